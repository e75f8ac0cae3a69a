"""A build whose language model server sends the API key back: no file, database or terminal shows it."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from quit.errors import ServerError, SettingsError
from tests.paths import starter_file
from tests.running import QUIT, run_process
from tests.servers.builds import TWO_HINTS, served, write_profile
from tests.servers.keys import ACCESS, KEY, assert_kept
from tests.servers.rude import FAULTS, Fault, RudeServer

pytestmark = pytest.mark.slow
FIRST, SECOND = "body that echoes the key", "401 with the key where messages are cut"


def _said_in_prefect(database_file: Path) -> list[str]:
    """Return the messages of all states and all log lines that Prefect has stored."""
    with closing(sqlite3.connect(database_file)) as database:
        tables = ("log", "task_run_state", "flow_run_state")
        return [text for table in tables for (text,) in database.execute(f"SELECT message FROM {table}") if text]


def test_a_key_that_a_server_sends_back_is_stored_nowhere(tmp_path, monkeypatch, prefect_server) -> None:
    monkeypatch.setenv(ACCESS, KEY)
    monkeypatch.setenv("QUIT_CACHE", str(tmp_path / "cache"))
    source = starter_file(tmp_path / "two.jsonl", 1, 5, 2)

    def script(number: int, payload) -> Fault:
        return FAULTS[FIRST if number == 0 else SECOND]

    with RudeServer(script) as server:
        run = {"shard_questions": 1, "workers": 2, "retries": 2, "retry_seconds": 0.0}
        more = {"server": {"patience_seconds": 0, "attempts": 1, "api_key_env": ACCESS}, "run": run}
        profile = write_profile(tmp_path / "rude.toml", served(server.base_url, "a", **more, **TWO_HINTS))
        result = run_process(*QUIT, "build", "-w", tmp_path / "W", "-p", profile, "-s", f"jsonl:{source}", code=None)
    assert result.code in (ServerError.exit_code, SettingsError.exit_code), result.err
    # A shard is not tried again where its client has tried as often as it may; the first asked about another prompt.
    assert len(server.requests) == 3
    stored = _said_in_prefect(prefect_server)
    for what in ("not a chat completion", "HTTP 401"):  # both were stored, so a key in them would be found
        assert any(what in text and f"({ACCESS})" in text for text in stored), what
    assert_kept(tmp_path, result.out, result.err)

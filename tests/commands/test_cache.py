"""`quit cache`: what is kept is shown and dropped by name."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from quit.cli import app
from quit.common.cache import equivalence_store, vector_store
from quit.errors import SettingsError
from quit.models.generation import Completion, GenerationCache
from quit.models.generation.cache import Entry


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUIT_CACHE", str(tmp_path))


def test_stores_are_shown_and_emptied_by_name() -> None:
    vector_store().write({b"a": bytes(1000), b"b": bytes(1000)})
    equivalence_store().write({b"c": bytes(8)})
    shown = json.loads(CliRunner().invoke(app, ["cache", "stats", "--json"]).stdout)["stores"]
    assert (shown["vectors"]["entries"], shown["equivalence"]["entries"]) == (2, 1)
    assert "vectors: 2 entries deleted" in CliRunner().invoke(app, ["cache", "drop", "vectors"]).stdout
    assert (vector_store().facts()["entries"], equivalence_store().facts()["entries"]) == (0, 1)


def test_replies_are_dropped_by_model_and_server() -> None:
    here, there = "http://a/v1", "http://b/v1"
    replies = [
        ("chat/m:1b", f"{here} root=x"),
        ("chat/m:1b+0f0f0f0f", here),
        ("chat/m:1b", there),
        ("transformers/m", ""),
    ]
    with GenerationCache() as cache:
        for number, (model, origin) in enumerate(replies):
            reply = Completion("x", "stop", origin=origin)
            cache.add(Entry(number.to_bytes(32, "big"), model, "p", "", 0, reply)).result()

    def left(*arguments: str) -> list[tuple[str, str]]:
        done = CliRunner().invoke(app, ["cache", *arguments])
        assert done.exit_code == 0, done.output
        rows = json.loads(CliRunner().invoke(app, ["cache", "stats", "--json"]).stdout)["models"]
        return [(row["model"], row["origin"]) for row in rows]

    for wrong in (["m:1"], ["m:1b", "--from", "http://c/v1"], [], ["--from", "http://a/v1"], ["m", "--damaged"]):
        assert isinstance(CliRunner().invoke(app, ["cache", "drop", *wrong]).exception, SettingsError)
    assert left("drop", "m:1b", "--from", f"{here}/") == replies[2:]
    assert left("drop", "--damaged") == replies[2:]
    assert left("drop", "chat/m:1b") == replies[3:]
    assert left("drop", "m") == []

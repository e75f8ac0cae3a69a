"""The store of what can be computed again: bounded, shared by processes, never wrong, never in the way."""

import os
import signal
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from quit.common.cache import ContentStore, cache_folder, content_key
from tests.paths import ROOT

VALUES = {content_key(str(number)): str(number).encode() * 50 for number in range(60)}


def store(path: Path, limit: int | None = None) -> ContentStore:
    return ContentStore(path, "kept", "Things", limit)


@pytest.mark.parametrize(
    ("ours", "everyones", "folder"),
    [
        ("/ours", "/caches", "/ours/models"),
        ("~/ours", "/caches", "/home/ada/ours/models"),
        (None, "/caches", "/caches/quit/models"),
        ("", "/caches", "/caches/quit/models"),
        (None, None, "/home/ada/.cache/quit/models"),
        (None, "", "/home/ada/.cache/quit/models"),
        (None, "relative", "/home/ada/.cache/quit/models"),  # to be ignored, says the XDG Base Directory Specification
    ],
)
def test_caches_are_where_the_user_wants_them(ours, everyones, folder, monkeypatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    for name, value in (("QUIT_CACHE", ours), ("XDG_CACHE_HOME", everyones)):
        monkeypatch.delenv(name, raising=False) if value is None else monkeypatch.setenv(name, value)
    assert cache_folder("models") == Path(folder)


def test_values_come_back_as_they_were_written(tmp_path: Path) -> None:
    kept = store(tmp_path / "deep" / "a.sqlite")
    assert kept.read(list(VALUES)) == {}
    kept.write(VALUES)
    kept.write({})
    assert kept.read([*VALUES, b"unknown"]) == VALUES


@pytest.mark.parametrize("other", [None, "text", 5, b"", b"0" * 54])
def test_a_changed_value_is_not_returned_and_is_replaced(tmp_path: Path, other: object) -> None:
    kept = store(tmp_path / "a.sqlite")
    kept.write(VALUES)
    with sqlite3.connect(kept.path) as database:
        whole = database.execute("SELECT value FROM kept WHERE key = ?", [content_key("0")]).fetchone()[0]
        assert len(whole) == 54 and whole != other
        database.execute("UPDATE kept SET value = ?", [other])
    assert kept.read(list(VALUES)) == {}
    kept.write(VALUES)
    assert kept.read(list(VALUES)) == VALUES


def test_it_stays_within_its_limit_and_the_oldest_go_first(tmp_path: Path) -> None:
    kept = store(tmp_path / "a.sqlite", limit=400_000)
    for number in range(100):
        kept.write({content_key(str(number)): bytes(10_000)})
    numbers = [number for number in range(100) if kept.read([content_key(str(number))])]
    assert numbers == list(range(numbers[0], 100)) and len(numbers) > 25
    assert kept.path.stat().st_size < 600_000
    kept.write({b"k": bytes(800_000)})  # a single value above the limit
    assert kept.read([b"k"]) == {}
    for limit in (0, 1):  # an empty file is larger
        store(tmp_path / "b.sqlite", limit=limit).write({b"k": b"v"})
        assert store(tmp_path / "b.sqlite").read([b"k"]) == {}


WRITE = """
import sys
from pathlib import Path
from tests.common.test_cache import VALUES, store
kept = store(Path(sys.argv[1]))
items = list(VALUES.items())
while True:
    for start in range(0, 60, 3):
        kept.write(dict(items[start:start + 3]))
    print("round", flush=True)
    if len(sys.argv) < 3:
        break
"""


@pytest.mark.slow
def test_threads_and_processes_share_one_file_and_a_killed_one_harms_nobody(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    command = [sys.executable, "-c", WRITE, str(path)]
    killed = subprocess.Popen([*command, "endless"], cwd=ROOT, stdout=subprocess.PIPE)
    others = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL) for _ in range(2)]
    assert killed.stdout is not None and killed.stdout.readline() == b"round\n"
    os.kill(killed.pid, signal.SIGKILL)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda item: store(path).write(dict([item])), VALUES.items()))
    assert [other.wait(timeout=300) for other in others] == [0, 0]
    killed.wait()
    killed.stdout.close()
    assert store(path).read(list(VALUES)) == VALUES


@pytest.mark.parametrize("harm", ["damaged", "folder", "unwritable"])
def test_a_file_that_cannot_be_used_costs_time_only(tmp_path, harm, caplog) -> None:
    path = Path("/proc/nowhere/a.sqlite") if harm == "unwritable" else tmp_path / "a.sqlite"
    if harm == "folder":
        path.mkdir()
    elif harm == "damaged":
        path.write_bytes(b"no database at all" * 500)
    kept = store(path)
    for _ in range(2):
        kept.write(VALUES)
        assert kept.read(list(VALUES)) == {}
    assert sum("QUIT_CACHE" in record.message for record in caplog.records) == 1

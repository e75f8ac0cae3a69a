"""The generation cache: what is written is there after a kill, for everyone, once."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from quit.errors import WorkspaceError
from quit.models.generation import ChatRequest, Completion, GenerationCache
from quit.models.generation.base import cache_key
from quit.models.generation.cache import Entry
from quit.models.prompting import PromptTemplate
from tests.models.generation.counting import Counting, ask, request
from tests.paths import ROOT


def _entry(number: int, text: str = "reply") -> Entry:
    return Entry(number.to_bytes(32, "big"), "model", "probe", f"q{number}", 0, Completion(text, "stop", 10, 2))


def test_a_cache_that_cannot_be_made_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUIT_CACHE", "/proc/nowhere")
    with pytest.raises(WorkspaceError, match=r"folder /proc/nowhere .*Set QUIT_CACHE to a folder"):
        GenerationCache()


def test_one_changed_bit_in_a_reply_is_found_and_the_reply_asked_for_again(tmp_path: Path) -> None:
    """Every third bit of the row: the reply is given out as it was, or not at all."""
    path = tmp_path / "g.sqlite"
    entry = replace(_entry(1, "Lesotho"), completion=Completion("Lesotho", "stop", 10, 2, origin="SERVER"))
    with GenerationCache(path) as cache:
        cache.add(entry).result()
        assert cache.find([entry.key]) == {entry.key: entry.completion}
    whole, refused = path.read_bytes(), 0
    start, end = whole.index(entry.key), whole.index(b"SERVER") + 6 + 4  # the row ends in four bytes
    for bit in range(8 * start, 8 * end, 3):
        raw = bytearray(whole)
        raw[bit // 8] ^= 1 << bit % 8
        path.write_bytes(raw)
        with GenerationCache(path) as cache:
            assert cache.find([entry.key]) in ({}, {entry.key: entry.completion})
            if not cache.find([entry.key]):
                refused += 1
        for leftover in tmp_path.glob("g.sqlite-*"):
            leftover.unlink()
    assert refused > 8 * 60 / 3, "the key, the texts, the counts, the time, the origin and the checksum"


def test_a_damaged_reply_is_told_asked_for_again_and_replaced(cache: GenerationCache, tmp_path: Path, notes) -> None:
    counting = Counting()
    ask(counting, cache, "abc")
    with closing(sqlite3.connect(cache.path)) as other, other:
        other.execute("UPDATE replies SET reply = 'to q' WHERE reply = 'to b'")
    for _ in range(2):
        assert ask(counting, cache, "abc") == ["to a", "to b", "to c"]
    assert counting.asked == ["a", "b", "c", "b"]
    assert notes == [f"{cache.path}: 1 kept reply does not fit the checksum. Asked again."]


WRITE = """
import sys
from pathlib import Path
from quit.models.generation import GenerationCache
from tests.models.generation.test_cache import _entry
cache, first, count = GenerationCache(Path(sys.argv[1])), int(sys.argv[2]), int(sys.argv[3])
for number in range(first, first + count):
    cache.add(_entry(number, f"reply {number}")).result()
    print(number, flush=True)
"""


def test_processes_write_side_by_side_and_a_reply_that_counts_survives_kill_9(cache: GenerationCache) -> None:
    def write(first: int, count: int) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", WRITE, str(cache.path), str(first), str(count)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)

    endless, short = write(0, 1_000_000), write(1_000_000, 100)
    numbers = [int(endless.stdout.readline()) for _ in range(50)]
    os.kill(endless.pid, signal.SIGKILL)
    numbers += [int(line) for line in [*endless.stdout, *short.stdout] if line.endswith("\n")]
    assert endless.wait() == -signal.SIGKILL and short.wait() == 0 and len(numbers) >= 150
    replies = cache.find([_entry(number).key for number in numbers])
    assert [replies[_entry(number).key].text for number in numbers] == [f"reply {number}" for number in numbers]


def test_whatever_stops_the_writer_reaches_who_waits_and_the_next_reply_is_written(cache: GenerationCache) -> None:
    with pytest.raises(UnicodeEncodeError):
        cache.add(replace(_entry(1), label="q\ud83d")).result(timeout=10)
    commits = [cache.add(_entry(number)) for number in range(2, 50)]
    assert not any(commit.cancel() for commit in commits), "one who stops waiting stops nobody else"
    for commit in commits:
        commit.result(timeout=10)
    assert set(cache.find([_entry(1).key, _entry(2).key])) == {_entry(2).key}


def test_a_file_that_is_gone_is_told_to_who_waits(cache: GenerationCache) -> None:
    shutil.rmtree(cache.path.parent)
    with pytest.raises(WorkspaceError, match="cannot be written"):
        cache.add(_entry(1)).result(timeout=10)


def test_a_file_that_is_no_cache_or_a_newer_programs_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no database at all, but long enough to be looked at as if it were one" * 20)
    with sqlite3.connect(tmp_path / "newer") as connection:
        connection.execute("PRAGMA user_version = 99")
    for name, message in (("text", "QUIT_CACHE"), ("newer", "newer program")):
        with pytest.raises(WorkspaceError, match=message):
            GenerationCache(tmp_path / name)


def test_everything_that_could_change_the_reply_changes_the_key() -> None:
    changes = [
        *({"max_tokens": 16}, {"temperature": 0.7}, {"sample": 1}, {"choices": ("Yes", "No")}),
        *({"frequency_penalty": 0.8}, {"presence_penalty": 0.8}, {"stop": ("\n",)}),
    ]
    keys = {cache_key("m", request("Who?", **change)) for change in [{}, *changes]}
    keys |= {cache_key("other model", request("Who?")), cache_key("m", request("Whom?"))}
    assert len(keys) == 1 + len(changes) + 2
    assert cache_key("m", request("Who?", group="q7")) in keys, "what it is for is not part of what is asked"


def test_replies_that_were_paid_for_before_keep_their_keys() -> None:
    template = PromptTemplate("t", "0123456789ab", (("user", "Say {what}."),))
    request = ChatRequest(template, {"what": "it"}, 8, 0.5, 3, ("Yes", "No"), "g")
    assert cache_key("m", request).hex() == "f21aca931028af8b52145c4a47a19ba26caff0b6732df766203250275934f1fb"

"""The generation cache: what is written is there after a kill, for everyone, once."""

import json
import multiprocessing
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quit.common.progress import listening
from quit.errors import InputError, ServerError, WorkspaceError
from quit.models.generation import CachedGenerator, ChatRequest, Completion, GenerationCache, Meter
from quit.models.generation.base import Done, cache_key
from quit.models.generation.cache import Entry
from quit.models.prompting import load_prompt
from tests.models.generation.test_server import Heard

ROOT = Path(__file__).parents[3]
PROMPT = load_prompt("probe")


def _entry(number: int, text: str = "reply") -> Entry:
    return Entry(number.to_bytes(32, "big"), "model", "probe", f"q{number}", 0, Completion(text, "stop", 10, 2))


def _request(question: str, **more) -> ChatRequest:
    return ChatRequest(PROMPT, {"question": question}, more.pop("max_tokens", 32), **more)


def _bits(path: Path) -> list[int]:
    """Return the positions of the bits of the only reply's row in a cache file."""
    raw = path.read_bytes()
    start = raw.index(_entry(1).key)
    return [*range(8 * start, 8 * (raw.index(b"SERVER") + 6 + 4))]


def test_one_changed_bit_in_a_reply_is_found_and_the_reply_asked_for_again(tmp_path: Path) -> None:
    """Whatever bit of the row changes: the reply is given out as it was, or not at all."""
    path = tmp_path / "g.sqlite"
    entry = replace(_entry(1, "Lesotho"), completion=Completion("Lesotho", "stop", 10, 2, origin="SERVER"))
    with GenerationCache(path) as cache:
        cache.add(entry).result()
    whole, refused = path.read_bytes(), 0
    for bit in _bits(path):
        raw = bytearray(whole)
        raw[bit // 8] ^= 1 << bit % 8
        path.write_bytes(raw)
        with GenerationCache(path) as cache:
            assert cache.find([entry.key]) in ({}, {entry.key: entry.completion})
            if not cache.find([entry.key]):
                refused += 1
                with pytest.raises(WorkspaceError, match="1 kept reply does not fit .*quit cache drop --damaged"):
                    cache.export(tmp_path / "out.jsonl")
                assert not (tmp_path / "out.jsonl").exists()
            if refused % 8 == 1:
                assert cache.drop_damaged() == 1 or cache.find([entry.key])
        for leftover in tmp_path.glob("g.sqlite-*"):
            leftover.unlink()
    assert refused > 8 * 60, "the key, the texts, the counts, the time, the origin and the checksum"


def test_a_damaged_reply_is_told_asked_for_again_and_replaced(tmp_path: Path) -> None:
    counting, heard = Counting(), Heard()
    with GenerationCache(tmp_path / "g.sqlite") as cache, listening(heard):
        CachedGenerator(counting, cache).complete([_request(text) for text in "abc"])
        with closing(sqlite3.connect(cache.path)) as other, other:
            other.execute("UPDATE replies SET reply = 'to q' WHERE reply = 'to b'")
        for _ in range(2):
            replies = CachedGenerator(counting, cache).complete([_request(text) for text in "abc"])
            assert [reply.text for reply in replies] == ["to a", "to b", "to c"]
        assert cache.export(tmp_path / "out.jsonl") == 3
    assert counting.asked == ["a", "b", "c", "b"]
    assert heard.lines == [f"{tmp_path / 'g.sqlite'}: 1 kept reply does not fit the checksum. Asked again."]


def test_the_first_reply_stays(tmp_path: Path) -> None:
    with GenerationCache(tmp_path / "g.sqlite") as cache:
        for text in ("first", "second"):
            cache.add(_entry(1, text)).result()
        assert cache.find([_entry(1).key])[_entry(1).key].text == "first"


def test_a_reply_that_counts_survives_kill_9(tmp_path: Path) -> None:
    program = textwrap.dedent(
        f"""
        import sys
        from pathlib import Path
        from quit.models.generation import Completion, GenerationCache
        from quit.models.generation.cache import Entry
        cache = GenerationCache(Path({str(tmp_path / "g.sqlite")!r}))
        for number in range(1_000_000):
            completion = Completion(f"reply {{number}}", "stop")
            cache.add(Entry(number.to_bytes(32, "big"), "m", "p", "", 0, completion)).result()
            print(number, flush=True)
        """
    )
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    numbers = [int(process.stdout.readline()) for _ in range(50)]
    os.kill(process.pid, signal.SIGKILL)
    numbers += [int(line) for line in process.stdout if line.endswith("\n")]
    process.wait()
    with GenerationCache(tmp_path / "g.sqlite") as cache:
        replies = cache.find([number.to_bytes(32, "big") for number in numbers])
    assert [replies[number.to_bytes(32, "big")].text for number in numbers] == [f"reply {number}" for number in numbers]


def _fill(path: Path, start: int) -> None:
    with GenerationCache(path) as cache:
        for written in [cache.add(_entry(number)) for number in range(start, start + 300)]:
            written.result()


def test_processes_write_side_by_side(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_fill, args=(tmp_path / "g.sqlite", start)) for start in (0, 200, 400)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    with GenerationCache(tmp_path / "g.sqlite") as cache:
        assert len(cache.find([_entry(number).key for number in range(700)])) == 700


def test_export_and_import_give_the_same_replies(tmp_path: Path) -> None:
    with GenerationCache(tmp_path / "a.sqlite") as cache:
        for number in range(5):
            cache.add(_entry(number, f"reply\n{number}")).result()
        assert cache.export(tmp_path / "out.jsonl") == 5
    with GenerationCache(tmp_path / "b.sqlite") as other:
        other.add(_entry(0, "mine")).result()
        assert other.merge(tmp_path / "out.jsonl") == (4, 1)
        assert other.find([_entry(0).key])[_entry(0).key].text == "mine"
        assert other.find([_entry(4).key])[_entry(4).key].text == "reply\n4"


@pytest.mark.parametrize(
    ("text", "prompt_tokens", "completion_tokens"),
    [("Leso\ud83d", 0, 0), ("x", 2**70, 0), ("x", 0, -1), ("x", float("inf"), 0), ("x", "7", 0), (None, 0, 0)],
)
def test_a_reply_that_no_table_could_hold_is_none(text, prompt_tokens, completion_tokens) -> None:
    with pytest.raises(ValueError):
        Completion(text, "stop", prompt_tokens, completion_tokens)


def test_whatever_stops_the_writer_reaches_who_waits_and_the_next_reply_is_written(tmp_path: Path) -> None:
    with GenerationCache(tmp_path / "g.sqlite") as cache:
        unfit = replace(_entry(1), label="q\ud83d")
        with pytest.raises(UnicodeEncodeError):
            cache.add(unfit).result(timeout=10)
        cache.add(_entry(2)).result(timeout=10)
        assert set(cache.find([_entry(1).key, _entry(2).key])) == {_entry(2).key}


def test_a_listener_that_fails_is_heard_of(tmp_path: Path) -> None:
    def heard(keys: Sequence[bytes]) -> None:
        raise RuntimeError("nobody listens")

    with GenerationCache(tmp_path / "g.sqlite") as cache:
        cache.heard = heard
        with pytest.raises(RuntimeError, match="nobody listens"):
            cache.add(_entry(1)).result(timeout=10)


def test_a_file_that_is_gone_is_said_to_who_waits(tmp_path: Path) -> None:
    with GenerationCache(tmp_path / "in" / "g.sqlite") as cache:
        shutil.rmtree(tmp_path / "in")
        with pytest.raises(WorkspaceError, match="cannot be written"):
            cache.add(_entry(1)).result(timeout=10)


def test_one_who_stops_waiting_stops_nobody_else(tmp_path: Path) -> None:
    with GenerationCache(tmp_path / "g.sqlite") as cache:
        waiting = [cache.add(_entry(number)) for number in range(50)]
        assert not any(each.cancel() for each in waiting)
        for each in waiting:
            each.result(timeout=10)


_ROW = {
    **{"key": "00" * 32, "model": "m", "prompt": "p", "label": "", "sample": 0, "reply": "x", "finish_reason": "stop"},
    **{"prompt_tokens": 1, "completion_tokens": 1, "created": 0.0},
}


@pytest.mark.parametrize(
    "line",
    [
        *("{", "{}", '{"key": "zz"}', json.dumps({"key": "00", "reply": "x"}), "[]"),
        json.dumps({**_ROW, "reply": "Leso\ud83d"}),
        json.dumps({**_ROW, "prompt_tokens": 2**70}),
        json.dumps({**_ROW, "label": "q\ud83d"}),
        json.dumps({**_ROW, "sample": 2**70}),
        "[" * 100_000,
    ],
)
def test_a_bad_line_is_named_and_nothing_of_the_file_is_taken(tmp_path: Path, line: str) -> None:
    with GenerationCache(tmp_path / "a.sqlite") as cache:
        cache.add(_entry(1)).result()
        cache.export(tmp_path / "out.jsonl")
    with (tmp_path / "out.jsonl").open("a") as file:
        file.write(line + "\n")
    with GenerationCache(tmp_path / "b.sqlite") as other:
        with pytest.raises(InputError, match="line 2"):
            other.merge(tmp_path / "out.jsonl")
        assert other.statistics() == []


def test_a_file_that_is_no_cache_is_refused(tmp_path: Path) -> None:
    (tmp_path / "g.sqlite").write_text("no database at all, but long enough to be looked at as if it were one" * 20)
    with pytest.raises(WorkspaceError, match="QUIT_CACHE"):
        GenerationCache(tmp_path / "g.sqlite")


def test_a_newer_cache_is_refused(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "g.sqlite") as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(WorkspaceError, match="newer program"):
        GenerationCache(tmp_path / "g.sqlite")


@settings(max_examples=50)
@given(st.text(), st.text())
def test_other_questions_have_other_keys(one: str, other: str) -> None:
    assert (cache_key("m", _request(one)) == cache_key("m", _request(other))) == (one == other)


def test_everything_that_could_change_the_reply_changes_the_key() -> None:
    base = _request("Who?")
    keys = {cache_key("m", base)}
    for other in (
        _request("Who?", max_tokens=16),
        _request("Who?", temperature=0.7),
        _request("Who?", sample=1),
        _request("Who?", choices=("Yes", "No")),
    ):
        keys.add(cache_key("m", other))
    keys.add(cache_key("other model", base))
    assert len(keys) == 6
    assert cache_key("m", _request("Who?", group="q7")) in keys, "what it is for is not part of what is asked"


class Counting:
    """Counts what reaches the model; empty or failing where told (a real model cannot be told to)."""

    name = identity = "counting"

    def __init__(self, replies: dict[str, str] | None = None, fail_after: int | None = None, pause: float = 0) -> None:
        self.asked: list[str] = []
        self._replies = replies or {}
        self._fail_after = fail_after
        self._pause = pause

    def generate(self, requests: Sequence[ChatRequest], done: Done) -> None:
        for position, request in enumerate(requests):
            if self._fail_after is not None and position >= self._fail_after:
                raise ServerError("gone")
            time.sleep(self._pause)
            question = request.fields["question"]
            self.asked.append(question)
            done(position, Completion(self._replies.get(question, f"to {question}"), "stop", 5, 1))


def test_nothing_is_asked_twice(tmp_path: Path) -> None:
    counting, meter = Counting(), Meter()
    with GenerationCache(tmp_path / "g.sqlite") as cache:
        cached = CachedGenerator(counting, cache, meter)
        first = cached.complete([_request(text) for text in "abcab"])
        assert [reply.text for reply in first] == ["to a", "to b", "to c", "to a", "to b"]
        assert CachedGenerator(counting, cache).complete([_request("b"), _request("d")])[1].text == "to d"
    assert counting.asked == ["a", "b", "c", "d"], "in order, each once"
    assert meter.snapshot()["counting"]["requests"] == 3


def test_two_shards_that_ask_the_same_at_once_pay_once(tmp_path: Path) -> None:
    counting = Counting(pause=0.01)
    with GenerationCache(tmp_path / "g.sqlite") as cache:
        cached = CachedGenerator(counting, cache)
        threads = [Thread(target=cached.complete, args=([_request(text) for text in "abcdef"],)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(counting.asked) == list("abcdef")


def test_of_two_processes_that_ask_at_once_both_have_the_reply_that_is_on_disk(tmp_path: Path) -> None:
    class Overtaken(Counting):
        def generate(self, requests: Sequence[ChatRequest], done: Done) -> None:
            with GenerationCache(tmp_path / "g.sqlite") as other:  # another process has its own
                CachedGenerator(Counting({"a": "the other's"}), other).complete(requests)
            super().generate(requests, done)

    with GenerationCache(tmp_path / "g.sqlite") as cache:
        for model in (Overtaken(), Counting()):
            replies = CachedGenerator(model, cache).complete([_request("a"), _request("b")])
            assert [reply.text for reply in replies] == ["the other's", "to b"]


def test_a_shard_that_waits_for_one_that_fails_asks_itself(tmp_path: Path) -> None:
    asking, failing = Event(), Event()

    class Failing(Counting):
        def generate(self, requests: Sequence[ChatRequest], done: Done) -> None:
            asking.set()
            failing.wait(60)
            raise ServerError("gone")

    def fail() -> None:
        with pytest.raises(ServerError):
            CachedGenerator(Failing(), cache).complete([_request("a")])

    with GenerationCache(tmp_path / "g.sqlite") as cache:
        well, threads = Counting(), [Thread(target=fail)]
        threads[0].start()
        assert asking.wait(60)
        threads.append(Thread(target=CachedGenerator(well, cache).complete, args=([_request("b"), _request("a")],)))
        threads[1].start()
        while "b" not in well.asked:
            time.sleep(0.01)
        assert well.asked == ["b"], "somebody else asks for the other"
        failing.set()
        for thread in threads:
            thread.join(60)
    assert well.asked == ["b", "a"]


def test_empty_replies_are_returned_and_not_kept(tmp_path: Path) -> None:
    counting = Counting({"a": " "})
    with GenerationCache(tmp_path / "g.sqlite") as cache:
        cached = CachedGenerator(counting, cache)
        assert [reply.text for reply in cached.complete([_request("a"), _request("b")])] == [" ", "to b"]
        cached.complete([_request("a"), _request("b")])
    assert counting.asked == ["a", "b", "a"]


def test_what_came_before_a_fault_is_kept(tmp_path: Path) -> None:
    failing, well = Counting(fail_after=2), Counting()
    with GenerationCache(tmp_path / "g.sqlite") as cache:
        with pytest.raises(ServerError):
            CachedGenerator(failing, cache).complete([_request(text) for text in "abcd"])
        CachedGenerator(well, cache).complete([_request(text) for text in "abcd"])
    assert failing.asked == ["a", "b"] and well.asked == ["c", "d"]

"""What is asked of a generator behind the cache: everything once, in order."""

import time
from collections.abc import Sequence
from functools import partial
from threading import Event, Thread

import pytest

from quit.errors import ServerError
from quit.models.generation import CachedGenerator, ChatRequest, GenerationCache, Meter
from tests.models.generation.counting import Counting, ask, request
from tests.running import together


def test_nothing_is_asked_twice(cache: GenerationCache) -> None:
    counting, meter = Counting(), Meter()
    first = CachedGenerator(counting, cache, meter).complete([request(text) for text in "abcab"])
    assert [reply.text for reply in first] == ["to a", "to b", "to c", "to a", "to b"]
    assert ask(counting, cache, "bd") == ["to b", "to d"]
    assert counting.asked == ["a", "b", "c", "d"], "in order, each once"
    assert meter.snapshot()["counting"].requests == 3


def test_two_shards_that_ask_the_same_at_once_pay_once(cache: GenerationCache) -> None:
    counting = Counting(before=lambda _: time.sleep(0.05))
    together(*[partial(ask, counting, cache, "abcdef")] * 4)
    assert sorted(counting.asked) == list("abcdef")


def test_of_two_processes_that_ask_at_once_both_have_the_reply_that_is_on_disk(cache: GenerationCache) -> None:
    def overtake(requests: Sequence[ChatRequest]) -> None:
        with GenerationCache(cache.path) as other:  # another process has its own
            CachedGenerator(Counting({"a": "the other's"}), other).complete(requests)

    for model in (Counting(before=overtake), Counting()):
        assert ask(model, cache, "ab") == ["the other's", "to b"]


def test_a_shard_that_waits_for_one_that_fails_asks_itself(cache: GenerationCache) -> None:
    asking, failing, well = Event(), Event(), Counting()

    def fail() -> None:
        failed = Counting(fail_after=0, before=lambda _: asking.set() or failing.wait(60))
        with pytest.raises(ServerError):
            ask(failed, cache, "a")

    threads = [Thread(target=fail), Thread(target=ask, args=(well, cache, "ba"))]
    threads[0].start()
    assert asking.wait(60)
    threads[1].start()
    while "b" not in well.asked:
        time.sleep(0.01)
    assert well.asked == ["b"], "somebody else asks for the other"
    failing.set()
    for thread in threads:
        thread.join(60)
    assert well.asked == ["b", "a"]


def test_empty_replies_are_returned_and_not_kept(cache: GenerationCache) -> None:
    counting = Counting({"a": " "})
    for _ in range(2):
        assert ask(counting, cache, "ab") == [" ", "to b"]
    assert counting.asked == ["a", "b", "a"]


def test_what_came_before_a_fault_is_kept(cache: GenerationCache) -> None:
    failing, well = Counting(fail_after=2), Counting()
    with pytest.raises(ServerError):
        ask(failing, cache, "abcd")
    ask(well, cache, "abcd")
    assert failing.asked == ["a", "b"] and well.asked == ["c", "d"]

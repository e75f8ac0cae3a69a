"""Requests that go elsewhere: in portions of seconds, each on disk before the next."""

from collections.abc import Sequence
from concurrent.futures import Future

import pytest

from quit.errors import Stopped
from quit.models.generation import ChatRequest, Completion
from quit.models.generation import portions as module
from quit.models.generation.ledger import Ledger
from quit.models.generation.portions import FIRST, PortionedGenerator
from quit.models.prompting import PromptTemplate

TEMPLATE = PromptTemplate("t", "", (("user", "{n}"),))


class _Own:
    name, identity = "m", "i"

    def generate(self, requests: Sequence[ChatRequest], on_reply) -> None:
        for position, request in enumerate(requests):
            on_reply(position, Completion(f"own {request.fields['n']}", "stop"))

    def release(self) -> None: ...


def _requests(count: int) -> list[ChatRequest]:
    return [ChatRequest(TEMPLATE, {"n": str(number)}, 1) for number in range(count)]


def _reply(request: ChatRequest) -> Completion:
    return Completion(f"there {request.fields['n']}", "stop")


@pytest.mark.parametrize(
    ("seconds", "sizes"), [(0.001, [64, 128, 256, 512, 40]), (0.1, [64, 50, 50]), (2.0, [64, 8, 8])]
)
def test_portions_come_to_take_five_seconds(monkeypatch: pytest.MonkeyPatch, seconds: float, sizes: list[int]) -> None:
    clock, lengths, replies = [0.0], [], {}
    monkeypatch.setattr(module.time, "monotonic", lambda: clock[0])

    def answer(requests: Sequence[ChatRequest]) -> list[Completion]:
        clock[0] += seconds * len(requests)
        lengths.append(len(requests))
        return [_reply(request) for request in requests]

    PortionedGenerator(_Own(), Ledger(), lambda: answer).generate(_requests(1000), replies.__setitem__)
    assert lengths[: len(sizes)] == sizes and sum(lengths) == 1000
    assert replies == {number: Completion(f"there {number}", "stop") for number in range(1000)}


def test_replies_are_on_disk_before_the_next_portion_and_an_interrupt_begins_none() -> None:
    ledger, on_disk, counts = Ledger(), [], []

    class Commit(Future):
        def result(self, timeout: float | None = None) -> None:
            on_disk.append(self)

    def answer(requests: Sequence[ChatRequest]) -> list[Completion]:
        counts.append(len(on_disk))
        if len(counts) == 2:
            ledger.stop()
        return [_reply(request) for request in requests]

    with pytest.raises(Stopped):
        PortionedGenerator(_Own(), ledger, lambda: answer).generate(_requests(1000), lambda *_: Commit())
    assert counts == [0, FIRST]


def test_where_nothing_is_elsewhere_the_model_answers() -> None:
    replies = {}
    PortionedGenerator(_Own(), Ledger(), lambda: None).generate(_requests(2), replies.__setitem__)
    assert [reply.text for reply in replies.values()] == ["own 0", "own 1"]

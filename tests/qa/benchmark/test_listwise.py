"""A language model that orders passages, and one that rambles."""

from collections.abc import Callable

import numpy as np
import pytest

from quit.models.generation import ChatRequest
from quit.qa.benchmark.listwise import ListwiseReranker, read_order, windows
from quit.qa.benchmark.plugins import make_reranker
from tests.qa.scripted import Talks
from tests.qa.scripted import settings as talking
from tests.rows import cases


@pytest.mark.parametrize(("reply", "order", "named"), cases(__file__, "orders.jsonl"))
def test_replies_of_every_kind_give_an_order(reply: str, order: list[int], named: int) -> None:
    """By hand, and of SmolLM2-135M: a numbered list of one sentence; the passages once more."""
    assert read_order(reply, 3) == (order, named)


def test_windows_cover_everything_from_the_end() -> None:
    assert windows(100, 20, 10) == [80, 70, 60, 50, 40, 30, 20, 10, 0]
    assert windows(25, 20, 10) == [5, 0] and windows(20, 20, 10) == [0] and windows(2, 20, 10) == [0]
    assert windows(1, 20, 10) == windows(0, 20, 10) == []


def _listwise(world, model: Callable[[ChatRequest], str]) -> ListwiseReranker:
    settings = talking(benchmark={"window": 4, "stride": 2})
    return make_reranker("listwise:tiny", world.context(settings=settings, models=Talks(settings, model)))


def test_a_listwise_reranker_brings_the_best_to_the_front(world) -> None:
    """The model sorts its passages by the number they begin with."""
    inputs: list[ChatRequest] = []

    def reply(request: ChatRequest) -> str:
        inputs.append(request)
        lines = [line.split(" ") for line in request.fields["passages"].splitlines()]
        return " > ".join(line[0] for line in sorted(lines, key=lambda line: -int(line[1])))

    texts = [f"{number} passage" for number in (3, 1, 4, 1, 5, 9, 2, 6)]
    scores = _listwise(world, reply).score("q", texts)
    ranked = [int(texts[i].split()[0]) for i in np.argsort(-scores)]
    # Windows 4-7, 2-5, 0-3 with half of each carried on: the two best of all are in front.
    assert len(inputs) == 3 and ranked[:2] == [9, 6] and sorted(ranked) == [1, 1, 2, 3, 4, 5, 6, 9]


def test_a_model_that_rambles_leaves_the_order_as_it_was(world) -> None:
    reranker = _listwise(world, lambda request: "What a question! Let me think about it.")
    assert np.argsort(-reranker.score("q", ["3 a", "1 b", "4 c"])).tolist() == [0, 1, 2]
    assert reranker.counts == {"windows": 1, "permutation": 0, "unread": 1, "cut": 0}
    assert len(reranker.score("q", [])) == 0

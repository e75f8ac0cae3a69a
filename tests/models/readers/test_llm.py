"""The order in which an LLM reader asks, and that its replies come back in the caller's."""

import itertools
import random
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from quit.models.prompting import load_prompt
from quit.models.protocols import Prompt
from quit.models.readers.llm import LLMReader, depth_first
from tests.systems.scripted import scripted

PATHS = [path for size in range(1, 6) for path in itertools.permutations(range(5), size)]


def _prompts(questions: int) -> list[Prompt]:
    return [
        Prompt(f"q{q}", f"Question {q}?", tuple(f"Hint {i}." for i in path)) for q in range(questions) for path in PATHS
    ]


def _shared(first: Sequence[str], second: Sequence[str]) -> int:
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))


@given(st.randoms(use_true_random=False))
def test_every_passage_follows_its_parent_with_nothing_but_the_subtree_between(rng: random.Random) -> None:
    prompts = _prompts(2)
    rng.shuffle(prompts)
    ordered = [prompts[row] for row in depth_first(prompts)]
    assert sorted(depth_first(prompts)) == list(range(len(prompts)))
    groups = [key for key, _ in itertools.groupby(prompt.question_id for prompt in ordered)]
    assert len(groups) == 2, "questions are mixed"
    for before, after in itertools.pairwise(ordered):
        if before.question_id == after.question_id:
            # In preorder all but the last hint was just read: no other order gets that for every passage.
            assert _shared(before.hints, after.hints) == len(after.hints) - 1


def _reader() -> LLMReader:
    """A reader that replies with what it was asked: a real model cannot tell one prompt from another so clearly."""
    echo = scripted(lambda request: request.fields.get("context", "bare") + "|" + request.fields["question"])
    return LLMReader("r", echo, load_prompt("reader"), load_prompt("probe"))


def test_replies_come_back_in_the_order_of_the_prompts() -> None:
    prompts = _prompts(3)
    random.Random(1).shuffle(prompts)
    replies = _reader().answer(prompts)
    assert [reply.raw for reply in replies] == [f"{' '.join(p.hints)}|{p.question}" for p in prompts]


def test_without_hints_the_probe_prompt_is_used() -> None:
    assert _reader().answer([Prompt("q", "Who?")])[0].raw == "bare|Who?"
    assert "context" not in _reader().request(Prompt("q", "Who?")).template.placeholders

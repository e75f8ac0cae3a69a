"""The order in which an LLM reader asks, that its replies come back in the caller's, and what it makes of them."""

import itertools
import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quit.models.generation import CachedGenerator, GenerationCache, Meter
from quit.models.prompting import load_prompt
from quit.models.protocols import NO_ANSWER, Prompt
from quit.models.readers import cleaning
from quit.models.readers.llm import LLMReader, depth_first
from quit.settings import load
from quit.stages.identities import reader_identity
from tests.qa.scripted import Scripted, scripted

PATHS = [path for size in range(1, 6) for path in itertools.permutations(range(5), size)]


def _prompts(questions: int) -> list[Prompt]:
    hints = [tuple(f"Hint {i}." for i in path) for path in PATHS]
    return [Prompt(f"q{q}", f"Question {q}?", some) for q in range(questions) for some in hints]


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


def test_replies_come_back_in_the_order_of_the_prompts_and_without_hints_the_probe_prompt_is_used() -> None:
    """The reply says what was asked: a real model cannot tell one prompt from another so clearly."""
    echo = scripted(lambda request: request.fields.get("context", "bare") + "|" + request.fields["question"])
    reader = LLMReader("r", echo, load_prompt("reader"), load_prompt("probe"))
    prompts = _prompts(3)
    random.Random(1).shuffle(prompts)
    replies = reader.answer([*prompts, Prompt("q", "Who?")])
    expected = [f"{' '.join(prompt.hints)}|{prompt.question}" for prompt in prompts]
    assert [reply.raw for reply in replies] == [*expected, "bare|Who?"]
    assert "context" not in reader.request(Prompt("q", "Who?")).template.placeholders


CUT = {"Who?": "It is a creature that lies in the", "Where?": "Paris\nThe capital of"}
"""A sentence that the token limit cut, and an answer that more follows."""
QUESTIONS = [Prompt("q1", "Who?"), Prompt("q2", "Where?")]


def _cached(cache: GenerationCache, meter: Meter | None = None, **options) -> LLMReader:
    model = Scripted(lambda request: CUT[request.fields["question"]], ends="length")
    return LLMReader("r", CachedGenerator(model, cache, meter), load_prompt("reader"), load_prompt("probe"), **options)


def test_kept_replies_are_cleaned_anew_and_not_asked_for_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with GenerationCache(tmp_path / "replies.sqlite") as cache:
        meter = Meter()
        with monkeypatch.context() as before:
            before.setattr(cleaning, "VERSION", cleaning.VERSION - 1)
            former = _cached(cache, meter)
            former.answer(QUESTIONS)
        dropping, judging = (_cached(cache, meter, sentences=policy) for policy in ("drop", "judge"))
        assert len({former.identity, dropping.identity, judging.identity}) == 3
        assert [reply.answer for reply in dropping.answer(QUESTIONS)] == [NO_ANSWER, "Paris"]
        replies = judging.answer(QUESTIONS)
        assert [reply.answer for reply in replies] == ["It is a creature that lies in the", "Paris"]
        assert [reply.ended for reply in replies] == ["length", "length"]
        count = meter.snapshot()["scripted"]
        assert (count.requests, count.cached) == (2, 4)


def test_a_reply_ends_before_a_stop_string_also_where_the_server_knows_none(tmp_path: Path) -> None:
    with GenerationCache(tmp_path / "replies.sqlite") as cache:
        reader = _cached(cache, stop=("\n",))
        _, reply = reader.answer(QUESTIONS)
    assert (reply.raw, reply.answer, reply.ended) == ("Paris", "Paris", "stop")
    assert reader.request(QUESTIONS[0]).stop == ("\n",)


def test_a_stop_string_may_be_a_control_character() -> None:
    model = CachedGenerator(Scripted(lambda _: "Pa\x07ris\x1eThe capital", ends="length"), None)
    reader = LLMReader("r", model, load_prompt("reader"), load_prompt("probe"), stop=("\x1e",))
    [reply] = reader.answer(QUESTIONS[:1])
    assert (reply.raw, reply.answer, reply.ended) == ("Paris", "Paris", "stop")


def test_policy_and_stop_strings_are_in_the_identity_of_language_models_alone_and_only_where_they_are_set() -> None:
    settings = load("server").settings
    reader = settings.readers[0]
    plain = reader_identity(reader, settings)
    assert "stop" not in plain and plain.endswith(f"|clean-{cleaning.VERSION}")
    judged = settings.model_copy(update={"labels": settings.labels.model_copy(update={"sentences": "judge"})})
    stopped = reader_identity(reader.model_copy(update={"stop": ("\n",)}), settings)
    assert len({plain, reader_identity(reader, judged), stopped}) == 3
    embedded = load("embedded").settings.readers[0]
    assert reader_identity(embedded, settings) == reader_identity(embedded, judged)

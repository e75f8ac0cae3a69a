"""Language models beside retrieval complexity (Gabburo et al. 2024): a prompted baseline, and a model's own answers
without documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from quit.models.factory import Models
from quit.models.generation import CachedGenerator, ChatRequest
from quit.models.judges import rule
from quit.models.prompting import PromptTemplate, load_prompt
from quit.models.protocols import NO_ANSWER, Judge, JudgeItem
from quit.models.readers.cleaning import as_written
from quit.qa.complexity.questions import ComplexityQuestion
from quit.qa.opening import language_model
from quit.qa.relevance import YesNo
from quit.qa.settings import QaSettings

_FIELDS = frozenset({"question"})
ANSWER_TOKENS = 64
"""Longest answer without documents, in tokens."""


@dataclass(frozen=True, slots=True)
class Opinion:
    """What a model says of each question, None where nothing could be read. ``facts``: who was asked, and what the
    replies came to."""

    verdicts: list[bool | None]
    facts: dict[str, str | Mapping[str, int]]


Ask = Callable[[Sequence[ComplexityQuestion]], Opinion]


def said_complex(
    generator: CachedGenerator, prompt: PromptTemplate, questions: Sequence[ComplexityQuestion]
) -> Opinion:
    """Return whether a model calls each question complex. ``facts`` count the verdicts, and those that could not be
    read."""
    yes_no = YesNo(generator, prompt)
    verdicts = yes_no.ask([{"question": question.text} for question in questions])
    counts = {"verdicts": len(verdicts), "unread": verdicts.count(None)}
    return Opinion(verdicts, {"baseline": yes_no.identity, "baseline_replies": counts})


def own_answers(generator: CachedGenerator, judge: Judge, questions: Sequence[ComplexityQuestion]) -> Opinion:
    """Return whether a judge finds a model's answer to each question correct.

    ``facts`` count the answers, how many are NO ANSWER, how many were cut at :data:`ANSWER_TOKENS`, and the judge's
    verdicts that could not be read.
    """
    prompt = load_prompt("probe", _FIELDS)
    replies = generator.complete([ChatRequest(prompt, {"question": each.text}, ANSWER_TOKENS) for each in questions])
    items = [
        JudgeItem(question.query_id, question.text, question.answers, as_written(reply.text))
        for question, reply in zip(questions, replies, strict=True)
    ]
    verdicts = [ruling.verdict.correct for ruling in rule(items, judge)]
    counts = {
        "answers": len(items),
        "no_answer": sum(item.candidate == NO_ANSWER for item in items),
        "tokens": ANSWER_TOKENS,
        "cut": sum(reply.finish_reason == "length" for reply in replies),
        "unread_verdicts": verdicts.count(None),
    }
    identity = "|".join((generator.identity, prompt.identity, f"{ANSWER_TOKENS} tokens"))
    return Opinion(verdicts, {"answers": identity, "answers_judged_by": judge.identity, "answer_replies": counts})


def opinion_models(models: Models, settings: QaSettings) -> dict[str, Ask]:
    """Return what asks the models that the settings name, none of them by default, by the opinion that is theirs
    (:data:`quit.qa.complexity.retrieval_complexity.OPINIONS`).

    Raises :class:`quit.errors.SettingsError` for a name or prompt that is none.
    """
    complexity, by_opinion = settings.complexity, dict[str, Ask]()
    if complexity.baseline_model:
        generator = language_model(complexity.baseline_model, models, settings, "complexity.baseline_model")
        by_opinion["said_complex"] = partial(said_complex, generator, load_prompt(complexity.baseline_prompt, _FIELDS))
    if complexity.answer_model:
        generator = language_model(complexity.answer_model, models, settings, "complexity.answer_model")
        by_opinion["correct"] = partial(own_answers, generator, models.judge)
    return by_opinion

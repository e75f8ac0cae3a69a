"""Language models beside retrieval complexity (Gabburo et al. 2024): a prompted baseline, and a model's own answers
without documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from quit.models.factory import Models
from quit.models.generation import ChatRequest
from quit.models.judges import rule
from quit.models.prompting import load_prompt
from quit.models.protocols import NO_ANSWER, JudgeItem
from quit.models.readers.cleaning import as_written
from quit.qa.complexity.retrieval_complexity import ComplexityQuestion, ComplexityResult
from quit.qa.opening import language_model
from quit.qa.relevance import YesNo
from quit.qa.settings import QaSettings

_FIELDS = frozenset({"question"})
ANSWER_TOKENS = 64
"""Longest answer without documents, in tokens."""


class Opinions:
    """The models that the settings name, none of them by default. ``about``: their identities, and after
    :meth:`added_to` what their replies came to: of the verdicts of baseline and judge, how many could not be read; of
    the answers, how many are NO ANSWER and how many were cut at :data:`ANSWER_TOKENS`.

    Raises :class:`quit.errors.SettingsError` for a name or prompt that is none.
    """

    def __init__(self, models: Models, settings: QaSettings) -> None:
        complexity = settings.complexity
        self._settings, self._models = complexity, models
        self._baseline = self._answers = None
        self.about: dict[str, Any] = {}
        if complexity.baseline_model:
            generator = language_model(complexity.baseline_model, models, settings, "complexity.baseline_model")
            self._baseline = YesNo(generator, load_prompt(complexity.baseline_prompt, _FIELDS))
            self.about["baseline"] = self._baseline.identity
        if complexity.answer_model:
            self._answers = language_model(complexity.answer_model, models, settings, "complexity.answer_model")
            self._prompt = load_prompt("probe", _FIELDS)
            parts = (self._answers.identity, self._prompt.identity, f"{ANSWER_TOKENS} tokens")
            self.about["answers"] = "|".join(parts)
            self.about["answers_judged_by"] = models.judge.identity

    def added_to(self, results: Sequence[ComplexityResult]) -> list[ComplexityResult]:
        """Return the ratings with what the models say: ``said_complex`` and ``correct``, None where nothing could be
        read."""
        questions = [rating.question for rating in results]
        verdicts: list[bool | None] = [None] * len(results)
        if self._baseline is not None:
            verdicts = self._baseline.ask([{"question": question.text} for question in questions])
            self.about["baseline_replies"] = {"verdicts": self._baseline.verdict_count, "unread": self._baseline.unread}
        return [
            replace(rating, said_complex=verdict, correct=correct)
            for rating, verdict, correct in zip(results, verdicts, self._correct(questions), strict=True)
        ]

    def _correct(self, questions: Sequence[ComplexityQuestion]) -> list[bool | None]:
        if self._answers is None:
            return [None] * len(questions)
        requests = [ChatRequest(self._prompt, {"question": question.text}, ANSWER_TOKENS) for question in questions]
        replies = self._answers.complete(requests)
        items = [
            JudgeItem(question.query_id, question.text, question.answers, as_written(reply.text))
            for question, reply in zip(questions, replies, strict=True)
        ]
        verdicts = [ruling.verdict.correct for ruling in rule(items, self._models.judge)]
        self.about["answer_replies"] = {
            "answers": len(items),
            "no_answer": sum(item.candidate == NO_ANSWER for item in items),
            "tokens": ANSWER_TOKENS,
            "cut": sum(reply.finish_reason == "length" for reply in replies),
            "unread_verdicts": verdicts.count(None),
        }
        return verdicts

"""Describe, first half: the question type in the TREC taxonomy (paper, section 3.1.3)."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from quit.models.question_type import QuestionTypeClassifier
from quit.settings import QuestionType


@dataclass(frozen=True, slots=True)
class Typed:
    """A question's type, and who says so (``source`` or the classifier's identity)."""

    coarse: str
    fine: str
    confidence: float
    producer: str


def question_types(questions: pa.Table, classifier: QuestionTypeClassifier, settings: QuestionType) -> list[Typed]:
    """Return the type of each question: the source's own where it names both levels, else the classifier's."""
    rows = questions.select(["question", "coarse", "fine"]).to_pylist()
    named = [settings.prefer_source and row["coarse"] and row["fine"] for row in rows]
    open_ones = [row["question"] for row, has in zip(rows, named, strict=True) if not has]
    guesses = iter(classifier.classify(open_ones) if open_ones else ())
    types = []
    for row, has in zip(rows, named, strict=True):
        if has:
            types.append(Typed(row["coarse"], row["fine"], 1.0, "source"))
        else:
            guess = next(guesses)
            types.append(Typed(guess.coarse, guess.fine, float(guess.confidence), classifier.identity))
    return types

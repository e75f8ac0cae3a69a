"""Describe, first half: the question type in the TREC taxonomy (paper, section 3.1.3).

The paper takes the classifier of HintEval, which follows Tayyar Madabushi and Lee (2016): rules over syntax and
semantics. Ours is another, :mod:`quit.models.question_type`: regression and a fine-tuned MiniLM over TREC's questions.
TriviaHG and WikiHint come with types of their own, which count where they are there.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from quit.models.question_type import QuestionTypeClassifier
from quit.settings import QuestionTypeSettings


@dataclass(frozen=True, slots=True)
class Typed:
    """A question's type, who says so (``source`` or the classifier's identity), and what the classifier says of it:
    columns of ``descriptions`` with the same names."""

    coarse: str
    fine: str
    type_confidence: float
    type_producer: str
    classifier_coarse: str = ""
    classifier_fine: str = ""


def question_types(
    questions: pa.Table, classifier: QuestionTypeClassifier, settings: QuestionTypeSettings
) -> list[Typed]:
    """Return the type of each question: the source's own where it names both levels, else the classifier's.

    The classifier is asked about all of them, so that a build can say how often it agrees with the sources.
    """
    rows = questions.select(["question", "coarse", "fine"]).to_pylist()
    guesses = classifier.classify([row["question"] for row in rows]) if rows else []
    types = []
    for row, guess in zip(rows, guesses, strict=True):
        levels = (guess.coarse, guess.fine)
        if settings.prefer_source and row["coarse"] and row["fine"]:
            types.append(Typed(row["coarse"], row["fine"], 1.0, "source", *levels))
        else:
            types.append(Typed(*levels, float(guess.confidence), classifier.identity, *levels))
    return types

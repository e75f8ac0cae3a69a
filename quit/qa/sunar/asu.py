"""Answer semantic uncertainty: a batch that makes the reader answer in many ways is worth less (the SUNAR paper,
section 3.2, eq. 1-3).

m answers are sampled from the batch, grouped into sets of one meaning, and every score of the batch is divided by the
number s of sets. The paper divides cross-encoder scores as they are; where those are negative that *raises* them, so
they pass a sigmoid first. ``literal`` keeps the printed form.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np

from quit.common.arithmetic import exp
from quit.qa.settings import Sunar
from quit.qa.sunar.entailment import Entailment
from quit.qa.sunar.nar import Rescore, Rescored
from quit.qa.sunar.reading import AnswerModel
from quit.text.answers import answer_key


def rescored(scores: np.ndarray, s: float, literal: bool = False) -> np.ndarray:
    """Return RESCORE(B, 1/s), float64, of the batch's shape. Never grows with s, unless ``literal``."""
    values = np.asarray(scores, dtype=np.float64)
    if not literal:
        values = 1.0 / (1.0 + exp(-values))
    return values / s


def semantic_sets(question: str, answers: Sequence[str], entailment: Entailment) -> list[list[int]]:
    """Return the places of the answers in sets of one meaning (sigma of eq. 3), in the order of their first members.

    Greedy in sample order: an answer joins the first set whose first member it entails and is entailed by. No answers,
    no sets.
    """
    sets: list[list[int]] = []
    for number, answer in enumerate(answers):
        for members in sets:
            first = answers[members[0]]
            if answer_key(first) == answer_key(answer) or entailment.mutual(question, first, answer):
                members.append(number)
                break
        else:
            sets.append([number])
    return sets


def half_contradictions(question: str, answers: Sequence[str], entailment: Entailment) -> float:
    """Return half the number of pairs of distinct answers that contradict each other, at least 1/2: the divisor of the
    authors' code."""
    pairs = combinations(dict.fromkeys(answers), 2)
    return max(1, sum(entailment.contradicts(question, *pair) for pair in pairs)) / 2


def asu(
    question: str,
    texts: Callable[[Sequence[int]], list[str]],
    reader: AnswerModel,
    entailment: Entailment,
    settings: Sunar,
) -> Rescore:
    """Return the feedback on batches retrieved for a sub-question.

    ``texts``: rows to what is read. Of ``settings``, ``m``, ``divisor`` and ``literal``. Without an answer s is 1, with
    ``divisor = "contradictions"`` 0.5.
    """

    def rescore(rows: Sequence[int], scores: np.ndarray) -> Rescored:
        answers = reader.samples(question, texts(rows), settings.m)
        if settings.divisor == "contradictions":
            s = half_contradictions(question, answers, entailment)
            return Rescored(rescored(scores, s, settings.literal), {"s": s, "answers": answers})
        sets = semantic_sets(question, answers, entailment)
        s = max(1, len(sets))
        by_meaning = [[answers[number] for number in each] for each in sets]
        return Rescored(rescored(scores, s, settings.literal), {"s": s, "sets": by_meaning})

    return rescore

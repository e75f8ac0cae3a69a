"""Convergence from a score of each (hint, candidate) pair (Mozafari et al. 2024, TriviaHG): how far a hint narrows the
candidate answers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from quit.common.arithmetic import products
from quit.models.protocols import Encoder, HintPair, HintScorer, HintSet
from quit.settings import Convergence

VERSION = 2
REFERS_FROM = 0.5
"""Score from which a hint refers to a candidate."""


def convergence(distractor_scores: Sequence[int], gold_score: int, candidate_cap: int = 11) -> float:
    """Return the convergence of a hint from 0/1 scores (does it refer to this candidate?), 0 to 1, two decimals.

    Of the distractors the first ``candidate_cap - 1`` count; the gold answer is the last of the n candidates.
    0 if the hint does not refer to the gold answer, else 1 - (sum(scores) - 1) / n.
    """
    if not gold_score:
        return 0.0
    distractors = list(distractor_scores)[: candidate_cap - 1]
    n = len(distractors) + 1
    return round(1 - sum(distractors) / n, 2)


class ScoredConvergence:
    """Convergence by the paper's formula, from a scorer that is asked about each (hint, candidate) pair. A pair
    without a score counts as "does not refer"."""

    def __init__(self, scorer: HintScorer, settings: Convergence) -> None:
        self._scorer = scorer
        self._settings = settings
        self.identity = f"scored/{VERSION}/from={REFERS_FROM:g}+{scorer.identity}"

    def values(self, items: Sequence[HintSet]) -> list[list[float]]:
        """Return the convergence of each hint of each question, 0 to 1."""
        return self.counted(items)[0]

    def counted(self, items: Sequence[HintSet]) -> tuple[list[list[float]], list[list[int]]]:
        """Return the convergence of each hint of each question, 0 to 1, and its distinct candidates without a score."""
        pairs = [
            HintPair(item.question, hint, answer)
            for item in items
            for hint in item.hints
            for answer in (*item.distractors, item.gold)
        ]
        scores = iter(self._scorer.score(pairs).tolist())
        cap = self._settings.candidate_cap
        values: list[list[float]] = []
        unread: list[list[int]] = []
        for item in items:
            rows = [[(answer, next(scores)) for answer in (*item.distractors, item.gold)] for _ in item.hints]
            refers = [[int(score >= REFERS_FROM) for _, score in row] for row in rows]
            values.append([convergence(row[:-1], row[-1], cap) for row in refers])
            unread.append([len({answer for answer, score in row if math.isnan(score)}) for row in rows])
        return values, unread


class SimilarityConvergence:
    """The plain stand-in: a hint may refer to every candidate that is about as near to it as the gold answer.

    If most candidates are nearer to a hint than the gold answer, the hint does not refer to it: its convergence is 0.
    """

    def __init__(self, encoder: Encoder, settings: Convergence) -> None:
        self._encoder = encoder
        self._settings = settings
        self.identity = f"similarity/{VERSION}/margin={settings.margin:g}+{encoder.identity}"

    def values(self, items: Sequence[HintSet]) -> list[list[float]]:
        """Return the convergence of each hint of each question, 0 to 1; 0 where there is no distractor to tell
        apart."""
        self._encoder.encode([text for item in items for text in (*item.hints, *item.distractors, item.gold)])
        return [self._values(item) for item in items]

    def _values(self, item: HintSet) -> list[float]:
        if not item.distractors:
            return [0.0] * len(item.hints)
        near = products(self._encoder.encode(list(item.hints)), self._encoder.encode([*item.distractors, item.gold]))
        distractors, gold = near[:, :-1], near[:, -1:]
        refers = gold >= np.median(distractors, axis=1, keepdims=True)
        scores = np.hstack([distractors >= gold - self._settings.margin, refers]).astype(int).tolist()
        return [convergence(row[:-1], row[-1], self._settings.candidate_cap) for row in scores]

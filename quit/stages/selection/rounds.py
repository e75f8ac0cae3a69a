"""Choose passages, ask about them, and stop when the bounds on wrong labels of the others are low enough.

The audit is a simple random sample of all passages. The predictor chooses evidence from the answers of earlier evidence
only: it sees neither the audit's passages nor their answers. So at every look (interim analysis) the audit outside the
evidence is a simple random sample of all passages outside it. Predictions are fixed before they are compared with the
audit. The number of looks is fixed, and each has two bounds. Every bound takes an equal part of 1 - confidence
(Bonferroni), so all hold together, those of the last look included.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

import numpy as np

from quit.stages.label import PREDICTED_FROM
from quit.stages.labelling.answers import fully_relevant
from quit.stages.labelling.passages import passage_count
from quit.stages.selection.choice import choose
from quit.stages.selection.predictor import predict

MAX_HINTS_ESTIMATED = 6
"""Hints per question at most: 6 make 1,956 passages and matrices of 15 MB, 7 would make matrices of 750 MB."""

INTERIM_LOOKS = (0.02, 0.04, 0.06, 0.08, 0.10, 0.13, 0.17, 0.22, 0.30, 0.45)
"""Shares of the passages that are evidence at each look; after the last everything is asked."""

Ask = Callable[[np.ndarray], np.ndarray]
"""Asks some passages (bool, shape (questions, passages)); see :func:`select`."""
_UNIT = 1400
"""Passages from which on the audit is larger than its least size: fitted to the costs in docs/research/economy.md."""


class Reason(IntEnum):
    """Why a passage was asked. ``EXACT``: the promise could not be kept otherwise, so everything was."""

    NOT_ASKED = 0
    AUDIT = 1
    EVIDENCE = 2
    EXACT = 3


@dataclass(frozen=True)
class ErrorGuarantee:
    """The promise: with probability ``confidence``, wrong labels are at most a share ``error`` of the passages.

    ``audit``: passages in the audit, :func:`quit.stages.selection.rounds.audit_size` where None. ``looks``: shares of
    the passages that are evidence at each look, ascending.
    """

    error: float = 0.05
    confidence: float = 0.95
    audit: int | None = None
    looks: tuple[float, ...] = INTERIM_LOOKS

    @property
    def alpha(self) -> float:
        """The error probability of each bound: 1 - confidence in equal parts for two bounds at each look."""
        return (1 - self.confidence) / (2 * len(self.looks))

    def audit_of(self, population: int) -> int:
        """Return the size of the audit of ``population`` passages."""
        return audit_size(population, self.error, self.alpha) if self.audit is None else min(self.audit, population)


@dataclass(frozen=True)
class Look:
    """The result of a look.

    ``asked``: passages asked; ``audit``: passages of the audit that are not evidence; ``missed``, ``false``: of these,
    label 2 predicted as 1, and label 1 predicted as 2; ``missed_bound``, ``false_bound``: upper bounds of such passages
    among those not asked, as shares of all passages; ``stopped``: no more were asked.
    """

    asked: int
    audit: int
    missed: int
    false: int
    missed_bound: float
    false_bound: float
    stopped: bool


@dataclass(frozen=True)
class PassageSelection:
    """Reason and probability of each passage (shape (questions, passages)), and the looks.

    ``reason``: int8, values of :class:`Reason`; ``probability``: float64, P(label 2), NaN where asked.
    """

    reason: np.ndarray
    probability: np.ndarray
    rounds: tuple[Look, ...]


class Answered:
    """The passages asked so far (``asked``), which of them are label 2, and how firmly (see ``features``)."""

    def __init__(self, ask: Ask, shape: tuple[int, int]) -> None:
        self._ask = ask
        self.asked = np.zeros(shape, dtype=bool)
        self.label_2 = np.zeros(shape, dtype=bool)
        self.firm = np.zeros(shape, dtype=np.float32)

    def add(self, passages: np.ndarray) -> None:
        """Ask those of the passages that were not asked before."""
        new = passages & ~self.asked
        if not new.any():
            return
        answers = self._ask(new)[:, new]
        self.asked |= new
        self.label_2[new] = fully_relevant(answers == 1)
        self.firm[new] = 1 / (1 + (answers == 0).sum(axis=0))


def select(
    questions: Sequence[str],
    hints: int,
    ask: Ask,
    options: ErrorGuarantee,
    *,
    draw: np.ndarray,
    prompt_tokens: np.ndarray | None = None,
) -> PassageSelection:
    """Return which passages were asked, the predictions of the others, and the looks.

    ``questions``: ids, ascending, each with P = ``passage_count(hints)`` passages in the order of
    ``permutation_table(hints)``. ``ask(mask)``: bool (Q, P), passages not asked before; returns int8 (L, Q, P), for
    each labeler 1 accepted, 0 asked and not accepted, -1 not asked. ``draw``: float64 (Q, P), uniform numbers that
    nothing else depends on; the audit has the smallest. ``prompt_tokens``: see
    :func:`quit.stages.selection.choice.computed_tokens`.

    Raises ``ValueError`` if the ids do not ascend or ``draw`` has another shape.
    """
    shape = (len(questions), passage_count(hints))
    if list(questions) != sorted(set(questions)) or draw.shape != shape:
        raise ValueError(f"Selection needs ascending question ids and draws of shape {shape}, not {draw.shape}.")
    audit = draw_passages(draw, options.audit_of(draw.size))
    answered = Answered(ask, shape)
    answered.add(audit)
    rounds = []
    for evidence, probability in predictions(answered, hints, options.looks, prompt_tokens):
        rounds.append(look(evidence, probability, audit, answered.label_2, options))
        if rounds[-1].stopped:
            break
    else:
        answered.add(np.ones(shape, dtype=bool))
        evidence, probability = np.zeros(shape, dtype=bool), np.zeros(shape)
        rounds.append(Look(draw.size, 0, 0, 0, 0.0, 0.0, True))
    reason = np.where(answered.asked, Reason.EXACT, Reason.NOT_ASKED).astype(np.int8)
    reason[evidence] = Reason.EVIDENCE
    reason[audit] = Reason.AUDIT
    return PassageSelection(reason, np.where(answered.asked, np.nan, probability), tuple(rounds))


def draw_passages(draw: np.ndarray, size: int) -> np.ndarray:
    """Return which passages have the ``size`` smallest numbers, equal ones in their order: bool, of the same shape."""
    audit = np.zeros(draw.size, dtype=bool)
    audit[np.argsort(draw, axis=None, kind="stable")[:size]] = True
    return audit.reshape(draw.shape)


def predictions(
    answered: Answered, hints: int, looks: Sequence[float], prompt_tokens: np.ndarray | None
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Ask evidence, and yield (evidence, P(label 2) of all passages) at each look.

    Up to the first look all passages count as uncertain, so that the evidence covers every question. From then on the
    predictions are renewed halfway between two looks, so that new evidence follows from the answers.
    """
    evidence = np.zeros(answered.asked.shape, dtype=bool)
    probability = np.full(evidence.shape, 0.5)
    last_share = 0.0
    for share in looks:
        for target in ((last_share + share) / 2, share) if last_share else (share,):
            more = max(round(target * evidence.size), len(evidence)) - int(evidence.sum())
            evidence = choose(probability, evidence, more, prompt_tokens, hints)
            answered.add(evidence)
            probability = predict(answered.label_2, answered.firm, evidence, hints)
        last_share = share
        yield evidence, probability


def look(
    evidence: np.ndarray, probability: np.ndarray, audit: np.ndarray, label_2: np.ndarray, options: ErrorGuarantee
) -> Look:
    """Return what the audit says of the predictions (all arguments have shape (Q, P)); of ``label_2`` only the audit's
    are used."""
    sample, predicted_2 = audit & ~evidence, probability >= PREDICTED_FROM
    counts = []
    for predicted in (~predicted_2, predicted_2):
        compared = sample & predicted
        wrong = int((compared & (label_2 != predicted_2)).sum())
        bound = upper_bound(wrong, int(compared.sum()), int((predicted & ~evidence).sum()), options.alpha)
        counts.append((wrong, (bound - wrong) / audit.size))
    (missed, missed_bound), (false, false_bound) = counts
    return Look(
        asked=int((audit | evidence).sum()),
        audit=int(sample.sum()),
        missed=missed,
        false=false,
        missed_bound=missed_bound,
        false_bound=false_bound,
        stopped=missed_bound + false_bound <= options.error,
    )


@lru_cache(maxsize=4096)
def upper_bound(wrong: int, sample: int, population: int, alpha: float) -> int:
    """Return the exact one-sided upper confidence bound on how many of a population are wrong.

    ``wrong``: wrong ones in a simple random sample without replacement of ``sample`` of the ``population``. The bound
    is the largest number of wrong ones with which so few would be found with probability above ``alpha``
    (hypergeometric; Clopper and Pearson 1934, for a finite population Buonaccorsi 1987). It is below the truth with
    probability ``alpha`` at most.
    """
    from scipy.stats import hypergeom

    more = range(wrong + 1, population + 1)
    return wrong + bisect_left(more, -alpha, key=lambda count: -hypergeom.cdf(wrong, population, count, sample))


def audit_size(population: int, error: float, alpha: float) -> int:
    """Return how many passages of a build the audit asks.

    The smallest possible audit has no wrong label and two bounds that add up to ``error``:
    ``n0 = 2 ln(1 / alpha) / error``, by the Poisson limit of the hypergeometric distribution. A larger audit saves
    evidence, because its bounds are nearer to the true share. The saving grows with the number of passages. The size is
    ``n0 * sqrt(population / 1400)``, at least 1.25 ``n0``.

    ``alpha``: error probability of one bound.
    """
    least = 2 * math.log(1 / alpha) / error
    return min(population, math.ceil(least * max(1.25, math.sqrt(population / _UNIT))))

"""How sure a mean is (bootstrap over questions), and whether two systems differ (paired tests over the same questions).

Everything is seeded. Questions are the unit: the 325 passages of one question are no independent observations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

_EXACT = 16
"""Up to so many differing questions every sign pattern is tried (65,536) instead of a sample."""
_AT_ONCE = 1_000
"""Resamples held in memory at a time."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """System a against b: mean difference a - b with its interval, and two-sided p values (``holm``: for all comparisons made)."""

    difference: float
    low: float
    high: float
    p_randomisation: float
    p_t: float
    holm: float = 1.0


def intervals(values: np.ndarray, resamples: int, level: float, seed: int) -> np.ndarray:
    """Return percentile bootstrap intervals of the means of columns, shape (columns, 2).

    ``values``: shape (questions, columns). All columns share their resamples, so intervals of different systems go together. Without
    questions the interval is (0, 0).
    """
    questions = len(values)
    if not questions:
        return np.zeros((values.shape[1], 2))
    generator = np.random.default_rng(seed)
    means = []
    for start in range(0, resamples, _AT_ONCE):
        drawn = generator.multinomial(questions, np.full(questions, 1 / questions), min(_AT_ONCE, resamples - start))
        means.append(drawn.astype(np.float64) @ values / questions)
    tail = (1 - level) / 2
    return np.quantile(np.concatenate(means), [tail, 1 - tail], axis=0).T


def compare(
    pairs: Sequence[tuple[np.ndarray, np.ndarray]], resamples: int, level: float, seed: int
) -> list[Comparison]:
    """Compare two systems on the same questions, pair by pair: values of shape (questions,), in the same order in all pairs.

    The randomisation test flips the signs of the differences (all ways where at most 16 questions differ, else ``resamples``, and the
    observed one counts among them); ``p_t`` is the paired t test's. Systems that never differ have p = 1. All pairs share their
    resamples. ``holm`` is Holm's correction of ``p_randomisation`` for these pairs.
    """
    if not pairs:
        return []
    differences = np.stack([np.subtract(a, b, dtype=np.float64) for a, b in pairs], axis=1)
    bounds = intervals(differences, resamples, level, seed)
    flipped = _randomisation(differences, resamples, seed)
    adjusted = holm(flipped)
    made = []
    for place, (a, b) in enumerate(pairs):
        mine = differences[:, place]
        # scipy warns and gives NaN where all differences are equal: there is no spread to measure one against.
        p_t = float(stats.ttest_rel(a, b).pvalue) if len(mine) > 1 and np.ptp(mine) > 0 else 1.0
        mean = float(mine.mean()) if len(mine) else 0.0
        made.append(Comparison(mean, *map(float, bounds[place]), flipped[place], p_t, adjusted[place]))
    return made


def holm(p_values: Sequence[float]) -> list[float]:
    """Return Holm's step-down adjusted p values, in the same order.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p_values, kind="stable")
    made = np.zeros(len(order))
    highest = 0.0
    for place, row in enumerate(order):
        highest = max(highest, min(1.0, (len(order) - place) * p_values[row]))
        made[row] = highest
    return made.tolist()


def _randomisation(differences: np.ndarray, resamples: int, seed: int) -> list[float]:
    """Return one p value a column of ``differences``, shape (questions, pairs)."""
    # Sums of the same numbers in another order must count as equal.
    observed = np.abs(differences.sum(axis=0)) - 1e-12
    extreme = np.ones(differences.shape[1])
    many = np.flatnonzero((differences != 0).sum(axis=0) > _EXACT)
    generator = np.random.default_rng(seed)
    for start in range(0, resamples if len(many) else 0, _AT_ONCE):
        signs = generator.integers(0, 2, (min(_AT_ONCE, resamples - start), len(differences)), dtype=np.int8) * 2 - 1
        extreme[many] += (np.abs(signs.astype(np.float64) @ differences[:, many]) >= observed[many]).sum(axis=0)
    made = extreme / (resamples + 1)
    for place in np.setdiff1d(np.arange(differences.shape[1]), many):
        moved = differences[differences[:, place] != 0, place]  # a zero has no sign to flip
        bits = (np.arange(2 ** len(moved))[:, None] >> np.arange(len(moved))) & 1
        made[place] = (np.abs((2 * bits - 1) @ moved) >= observed[place]).mean()
    return made.tolist()

"""How sure a mean is (bootstrap over questions), and whether two systems differ (paired tests over the same questions).

Everything is seeded. Questions are the unit: the 325 passages of one question are no independent observations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from quit.common.arithmetic import on_grid

_EXACT = 16
"""Up to so many differing questions every sign pattern is tried (65,536) instead of a sample."""
_AT_ONCE = 1_000
"""Resamples held in memory at a time, fewer of many questions (:func:`_chunks`)."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """System a against b: mean difference a - b, its interval, two-sided p values (``holm``: corrected).

    ``p_t`` is None where there is no t: all questions differ by the same amount other than 0.
    """

    difference: float
    low: float
    high: float
    p_randomisation: float
    p_t: float | None
    holm: float = 1.0


def intervals(values: np.ndarray, resamples: int, seed: int) -> np.ndarray:
    """Return 95% percentile bootstrap intervals of the means of columns, shape (columns, 2).

    ``values``: shape (questions, columns). All columns share their resamples, so intervals of different systems go
    together. Without questions the interval is (0, 0).
    """
    if not len(values):
        return np.zeros((values.shape[1], 2))
    return np.quantile(resampled_means(values, resamples, seed), [0.025, 0.975], axis=0).T


def resampled_means(values: np.ndarray, resamples: int, seed: int) -> np.ndarray:
    """Return the means of columns in each resample of the questions: shape (resamples, columns). ``values``: shape
    (questions, columns)."""
    questions = len(values)
    generator = np.random.default_rng(seed)
    means = []
    for size in _chunks(resamples, questions):
        counts = generator.multinomial(questions, np.full(questions, 1 / questions), size)
        means.append(counts.astype(np.float64) @ on_grid(values) / questions)
    return np.concatenate(means)


def _chunks(resamples: int, questions: int) -> Iterator[int]:
    """Yield how many resamples to draw at a time: at most 2^23 numbers, 64 MiB."""
    at_once = min(_AT_ONCE, max(1, (1 << 23) // max(1, questions)))
    for start in range(0, resamples, at_once):
        yield min(at_once, resamples - start)


def share_interval(right: np.ndarray, of: np.ndarray) -> tuple[float, float]:
    """Return the 95% percentile bootstrap interval of sum(right) / sum(of); whole questions are drawn, 2,000 times.

    ``right``, ``of``: counts of each question, none of ``of`` 0. Without questions the interval is (0, 0).
    """
    if not len(of):
        return 0.0, 0.0
    means = resampled_means(np.stack([right, of], axis=1), 2000, 0)
    low, high = np.quantile(means[:, 0] / means[:, 1], [0.025, 0.975]).tolist()
    return low, high


def accuracy_interval(right: Sequence[bool] | np.ndarray, questions: Sequence[str] | np.ndarray) -> tuple[float, float]:
    """Return the 95% interval of the share that is right, as :func:`share_interval`, to four digits.

    ``questions``: that of each, in order.
    """
    _, group = np.unique(questions, return_inverse=True)
    low, high = share_interval(np.bincount(group, right), np.bincount(group))
    return round(low, 4), round(high, 4)


def compare(pairs: Sequence[tuple[np.ndarray, np.ndarray]], resamples: int, seed: int) -> list[Comparison]:
    """Compare two systems on the same questions, pair by pair: values of shape (questions,), in the same order in all
    pairs.

    The randomisation test flips the signs of the differences (all ways where at most 16 questions differ, else
    ``resamples``, and the observed one counts among them); ``p_t`` is the paired t test's, which has
    nothing to say where the differences have no variance. Systems that never differ have p = 1. All pairs share their
    resamples.
    ``holm`` is Holm's correction of ``p_randomisation`` for these pairs.
    """
    from scipy import stats  # takes a second, which those who need intervals alone do not pay

    if not pairs:
        return []
    differences = np.stack([np.subtract(a, b, dtype=np.float64) for a, b in pairs], axis=1)
    bounds = intervals(differences, resamples, seed)
    p_randomisation = _randomisation(differences, resamples, seed)
    comparisons = []
    for column, (a, b), (low, high), p, adjusted in zip(
        differences.T, pairs, bounds.tolist(), p_randomisation, holm(p_randomisation), strict=True
    ):
        mean = float(column.mean()) if len(column) else 0.0
        p_t: float | None = None
        if len(column) and np.ptp(on_grid(column)) > 0:
            p_t = float(stats.ttest_rel(a, b).pvalue)
        elif not mean:
            p_t = 1.0
        comparisons.append(Comparison(mean, low, high, p, p_t, adjusted))
    return comparisons


def holm(p_values: Sequence[float]) -> list[float]:
    """Return Holm's step-down adjusted p values, in the same order.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    values = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    adjusted = np.empty(len(values))
    adjusted[order] = np.maximum.accumulate(np.minimum(1.0, values[order] * np.arange(len(values), 0, -1)))
    return adjusted.tolist()


def _randomisation(differences: np.ndarray, resamples: int, seed: int) -> list[float]:
    """Return one p value per column of ``differences``, shape (questions, pairs)."""
    differences = on_grid(differences)  # sums of the same numbers in another order count as equal
    observed = np.abs(differences.sum(axis=0))
    extreme = np.ones(differences.shape[1])
    many = np.flatnonzero((differences != 0).sum(axis=0) > _EXACT)
    generator = np.random.default_rng(seed)
    for size in _chunks(resamples if len(many) else 0, len(differences)):
        signs = generator.integers(0, 2, (size, len(differences)), dtype=np.int8) * 2 - 1
        extreme[many] += (np.abs(signs.astype(np.float64) @ differences[:, many]) >= observed[many]).sum(axis=0)
    p_values = extreme / (resamples + 1)
    for column in np.setdiff1d(np.arange(differences.shape[1]), many):
        moved = differences[differences[:, column] != 0, column]  # a zero has no sign to flip
        bits = (np.arange(2 ** len(moved))[:, None] >> np.arange(len(moved))) & 1
        p_values[column] = (np.abs((2 * bits - 1) @ moved) >= observed[column]).mean()
    return p_values.tolist()

"""How well a score or a decision goes with a known label.

Every statistic comes with a permutation test: how often shuffled labels go with the values at least as well (Monte
Carlo, with the observed order counted among them, so that no p is 0). Groups of dependent items are the unit of both:
the bootstrap draws them, the test exchanges them. Nothing here is defined where the values or the labels do not vary:
None.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypedDict

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

Statistic = Callable[[np.ndarray, np.ndarray], float | None]
MOST_UNDEFINED = 0.025
"""Share of the resamples that may lack the statistic: what is left out of a 95% interval on one side."""


class Association(TypedDict):
    """A statistic, its 95% bootstrap interval, its permutation p (two-sided if signed); None: not defined.

    The interval is not defined of a single group, whose resamples are all alike, and where the statistic is not in more
    than 2.5% of the resamples.
    """

    value: float | None
    low: float | None
    high: float | None
    p: float | None
    items: int


def associate(
    values: Sequence[float] | np.ndarray,
    labels: Sequence | np.ndarray,
    statistic: Statistic,
    *,
    seed: int,
    resamples: int = 1000,
    groups: Sequence | np.ndarray | None = None,
) -> Association:
    """Return a statistic of paired values and labels with its uncertainty.

    ``groups``: items of one group depend on each other (a question and its sub-questions). The bootstrap draws whole
    groups. The test gives each group the labels of a group of the same size, in a random order: a block permutation
    within and of whole blocks (Winkler et al., Multi-level block permutation, 2015). It is exact if, without an
    association, labels are exchangeable inside a group and between groups of one size; where neither changes any label,
    p is 1. Raises ``ValueError`` when lengths differ.
    """
    x, y = np.asarray(values), np.asarray(labels)
    if len(x) != len(y) or (groups is not None and len(groups) != len(x)):
        raise ValueError(f"{len(x)} values against {len(y)} labels")
    observed = statistic(x, y) if len(x) else None
    if observed is None:
        return {"value": None, "low": None, "high": None, "p": None, "items": len(x)}
    rng = np.random.default_rng(seed)
    _, codes = np.unique(np.arange(len(x)) if groups is None else np.asarray(groups), return_inverse=True)
    members = [np.flatnonzero(codes == code) for code in range(codes.max() + 1)]
    sizes = np.bincount(codes)
    blocks = [np.stack([members[code] for code in np.flatnonzero(sizes == size)]) for size in np.unique(sizes)]
    bootstrap, as_extreme = [], 1
    for _ in range(resamples):
        sample = np.concatenate([members[code] for code in rng.integers(0, len(members), len(members))])
        value = statistic(x[sample], y[sample])
        if value is not None:
            bootstrap.append(value)
        labels_of = np.empty_like(y)
        for block in blocks:  # rows are groups
            labels_of[block] = y[rng.permuted(rng.permutation(block), axis=1)]
        shuffled = statistic(x, labels_of)
        as_extreme += shuffled is not None and abs(shuffled) >= abs(observed) - 1e-12
    low, high = None, None
    if len(members) > 1 and resamples - len(bootstrap) <= MOST_UNDEFINED * resamples:
        low, high = np.quantile(bootstrap, (0.025, 0.975)).tolist()
    return {"value": float(observed), "low": low, "high": high, "p": as_extreme / (resamples + 1), "items": len(x)}


def spearman(values: ArrayLike, labels: ArrayLike) -> float | None:
    """Return Spearman's rank correlation, ties at their mean rank, -1 to 1."""
    varies = np.ptp(values) > 0 and np.ptp(labels) > 0  # scipy warns of what does not
    return float(stats.spearmanr(values, labels).statistic) if varies else None


def pearson(values: np.ndarray, labels: np.ndarray) -> float | None:
    """Return Pearson's correlation of numbers or decisions, -1 to 1."""
    x, y = values.astype(np.float64), labels.astype(np.float64)
    return float(np.corrcoef(x, y)[0, 1]) if np.ptp(x) > 0 and np.ptp(y) > 0 else None


def auc_minus_half(values: np.ndarray, labels: np.ndarray) -> float | None:
    """Return the probability that a positive has a higher value than a negative, ties half, minus 1/2: -0.5 to 0.5."""
    positive = labels.astype(bool)
    pairs = int(positive.sum()) * int((~positive).sum())
    if not pairs:
        return None
    return float(stats.mannwhitneyu(values[positive], values[~positive], method="asymptotic").statistic / pairs - 0.5)


def matthews(predicted: np.ndarray, labels: np.ndarray) -> float | None:
    """Return Matthews' correlation of two decisions, -1 to 1."""
    a, b = predicted.astype(bool), labels.astype(bool)
    tp, tn = float((a & b).sum()), float((~a & ~b).sum())
    fp, fn = float((a & ~b).sum()), float((~a & b).sum())
    size = np.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
    return float((tp * tn - fp * fn) / size) if size else None

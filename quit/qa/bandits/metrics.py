"""Metrics of what runs observed (4.3): precision, recall, distinct documents, alpha-nDCG (Clarke et al. 2008), labels
read.

``order`` is what :func:`quit.qa.bandits.simulate.simulate` returns, shape (R, T). Budgets are numbers of
documents; all of them may be 0, where precision and the rest are 0: nothing observed, nothing found.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from quit.common.arithmetic import log2
from quit.qa.bandits.request import Request

CUTOFFS = (5, 10, 20, 40, 50)
"""Documents after which alpha-nDCG is taken (table 3)."""
ALPHA = 0.5
"""alpha of alpha-nDCG: the share of its gain that a nugget loses each time it is seen (Clarke et al. 2008)."""
MAX_PAIRS = 1_000_000
"""Pairs of documents, or of a document and a nugget, in one array (8 MB): more runs are measured in parts."""


class Measures(NamedTuple):
    """What runs come to within each budget: arrays of shape (runs, budgets), float64, 0 where the denominator is 0.

    ``precision``: relevant observations / observations. ``recall``: relevant observations / all of them in the arms'
    lists. ``documents``, ``relevant_documents``: distinct ones observed. ``distinct_recall``: the latter / all distinct
    relevant documents in the lists. ``alpha_ndcg``: at the budget. ``labels``: relevance labels that the policy read.
    """

    precision: np.ndarray
    recall: np.ndarray
    documents: np.ndarray
    relevant_documents: np.ndarray
    distinct_recall: np.ndarray
    alpha_ndcg: np.ndarray
    labels: np.ndarray


NAMES = Measures._fields


def budget_documents(size: int, shares: Sequence[float]) -> list[int]:
    """Return each share of ``size`` documents, rounded down; below one document that is 0."""
    return [int(share * size + 1e-9) for share in shares]


def measure(
    request: Request, order: np.ndarray, budgets: Sequence[int], window: int, cutoffs: Sequence[int] = ()
) -> tuple[Measures, np.ndarray]:
    """Return the measures of runs, and alpha-nDCG at the ``cutoffs``, (runs, cutoffs).

    ``window``: labels that a pull reads: those past an arm's last observed rank are read too.
    """
    at = np.asarray(budgets, dtype=np.int64)
    relevance = request.relevant.reshape(-1)[order]
    hits = _prefix(relevance, at)
    total = int(request.relevant.sum())
    positions = request.pool_positions.reshape(-1)
    first = first_seen(order, positions, len(request.pool))
    new = np.take_along_axis(first, positions[order], axis=1) == np.arange(order.shape[1])
    relevant_found = _prefix(new & relevance, at)
    distinct = len(np.unique(request.documents[request.relevant]))
    ndcg = alpha_ndcg(gold_positions(request, first), request.nuggets, [*at, *cutoffs])
    values = Measures(
        precision=hits / np.maximum(at, 1),
        recall=hits / max(total, 1),
        documents=_prefix(new, at),
        relevant_documents=relevant_found,
        distinct_recall=relevant_found / max(distinct, 1),
        alpha_ndcg=ndcg[:, : len(at)],
        labels=_labels(request, order, at, window) if window else np.zeros((len(order), len(at))),
    )
    return values, ndcg[:, len(at) :]


def first_seen(order: np.ndarray, positions: np.ndarray, documents: int) -> np.ndarray:
    """Return at which step (from 0) each run first observed each document, shape (R, documents), int64; the largest
    int64 where it never did. ``positions``: of the flattened lists' documents in the pool."""
    runs, steps = order.shape
    first = np.full((runs, documents), steps, dtype=np.int64)
    run = np.arange(runs)
    for step in range(steps - 1, -1, -1):
        first[run, positions[order[:, step]]] = step
    return np.where(first == steps, np.iinfo(np.int64).max, first)


def gold_positions(request: Request, first: np.ndarray) -> np.ndarray:
    """Return ``first`` for the request's gold documents, shape (R, gold); those that no list holds are never seen."""
    positions = np.full((len(first), len(request.gold)), np.iinfo(np.int64).max)
    in_pool = np.isin(request.gold, request.pool)
    positions[:, in_pool] = first[:, np.searchsorted(request.pool, request.gold[in_pool])]
    return positions


def alpha_ndcg(positions: np.ndarray, nuggets: np.ndarray, cutoffs: Sequence[int], alpha: float = ALPHA) -> np.ndarray:
    """Return alpha-nDCG, shape (runs, cutoffs).

    ``positions``: at which step (from 0) each run first observed each document that holds a nugget, shape (R, G); a
    document observed again adds nothing and takes its place. ``nuggets``: (G, M). Gain of a document: sum over its
    nuggets of (1 - alpha) to the number of earlier documents with that nugget; discount log2(1 + k) at the k-th place.
    The ideal order is greedy over all G documents. 0 where there is no nugget.
    """
    depths = np.asarray(cutoffs)
    holds = nuggets.astype(np.float64)
    step = max(1, MAX_PAIRS // max(1, nuggets.shape[0] * max(nuggets.shape)))
    gain = np.empty(positions.shape)
    for low in range(0, len(positions), step):
        part = positions[low : low + step]
        before = (part[:, None, :] < part[:, :, None]).astype(np.float64)  # (runs, of document, earlier one)
        gain[low : low + step] = np.einsum("gm,rgm->rg", holds, (1.0 - alpha) ** (before @ holds))
    is_observed = positions < np.iinfo(np.int64).max
    gains = np.where(is_observed, gain / log2(np.where(is_observed, positions, 0) + 2.0), 0.0)
    dcg = (gains[:, :, None] * (positions[:, :, None] < depths)).sum(axis=1)
    ideal = ideal_gains(nuggets, alpha)
    best = np.concatenate([[0.0], np.cumsum(ideal / log2(np.arange(len(ideal)) + 2.0))])
    best_values = best[np.minimum(depths, len(ideal))]
    return np.divide(dcg, best_values, out=np.zeros_like(dcg), where=best_values > 0)


def ideal_gains(nuggets: np.ndarray, alpha: float) -> np.ndarray:
    """Return the gains of the greedy ideal order; ties go to the earlier document."""
    weights = nuggets.astype(np.float64)
    worth = np.ones(nuggets.shape[1])
    gains: list[float] = []
    while len(weights):
        gain = weights @ worth
        best = int(gain.argmax())
        gains.append(float(gain[best]))
        worth *= (1.0 - alpha) ** weights[best]
        weights = np.delete(weights, best, axis=0)
    return np.array(gains)


def _prefix(values: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return how many of the first ``at`` values of each run are true, shape (R, budgets), float64."""
    sums = np.zeros((len(values), values.shape[1] + 1), dtype=np.int32)
    np.cumsum(values, axis=1, out=sums[:, 1:])
    return sums[:, np.minimum(at, values.shape[1])].astype(np.float64)


def _labels(request: Request, order: np.ndarray, at: np.ndarray, window: int) -> np.ndarray:
    """Return how many (arm, rank) labels were read: up to ``window`` - 1 past each arm's last observed rank."""
    if window == 1:
        return np.broadcast_to(np.minimum(at, order.shape[1]).astype(np.float64), (len(order), len(at)))
    arms, ranks = request.documents.shape
    labels = np.zeros((len(order), len(at)))
    arm_of = order // ranks
    for column, budget in enumerate(at):
        for arm in range(arms):
            pulls = (arm_of[:, :budget] == arm).sum(axis=1)
            labels[:, column] += np.where(pulls > 0, np.minimum(pulls + window - 1, request.lengths[arm]), 0)
    return labels

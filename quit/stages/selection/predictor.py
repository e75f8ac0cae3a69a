"""P(label 2) of a question's passages, predicted from its labelled passages.

The features of a passage are the labels of its neighbours: passages with the same hints in another order, with a hint
more or fewer, before and after it in the tree of permutations. Its own label is in none of its features, so passages
with and without a label have the same features. A logistic regression, fitted to the former, predicts the latter.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from threadpoolctl import threadpool_limits

from quit.common.arithmetic import exp, log, on_grid
from quit.stages.labelling.passages import PermutationTable, permutation_table

_PRIOR = 0.5
"""Weight, in passages, of the question's own share of label 2 against the neighbours of one kind."""
_DISTANT = 0.05
"""The same against all passages weighted by similarity, where an equal one weighs 1."""
_HINT_APART = 1 / 8
_OTHER_LAST = 0.8
"""Similarity of two passages for each hint that only one of them has, and where their last hints differ."""
_LEAST = 0.01
_ROWS = 200_000
"""Passages that the regression is fitted to at most, evenly spread."""
_QUESTIONS_PER_PIECE = 512


@lru_cache(maxsize=2)
def ancestors(hints: int) -> np.ndarray:
    """Return the passages whose hints begin each passage, nearest first: int64, shape (passages, hints - 1), -1 where
    there are no more."""
    parent = permutation_table(hints).parent
    columns = [parent.astype(np.int64)]
    for _ in range(hints - 2):
        columns.append(np.where(columns[-1] >= 0, parent[columns[-1]], -1))
    return np.stack(columns[: hints - 1], axis=1) if hints > 1 else np.empty((len(parent), 0), dtype=np.int64)


@lru_cache(maxsize=2)
def membership(hints: int) -> np.ndarray:
    """Return which hints each passage has: bool, shape (passages, hints)."""
    table = permutation_table(hints)
    has = np.zeros((len(table), hints), dtype=bool)
    has[np.repeat(np.arange(len(table)), table.hints), table.indices] = True
    return has


def last_hints(table: PermutationTable) -> np.ndarray:
    """Return the last hint of each passage: int8, shape (passages,)."""
    return table.indices[table.offsets[1:] - 1]


@lru_cache(maxsize=2)
def similarity(hints: int) -> np.ndarray:
    """Return how much passages have in common, from 1 for a passage and itself: float64, shape (passages, passages)."""
    table, has = permutation_table(hints), membership(hints).astype(np.float64)
    sizes = table.hints.astype(np.float64)
    apart = sizes[:, None] + sizes - 2 * (has @ has.T)
    last = last_hints(table)
    return on_grid(_HINT_APART**apart * np.where(last[:, None] == last, 1, _OTHER_LAST))


@lru_cache(maxsize=2)
def relations(hints: int) -> np.ndarray:
    """Return which passages are a passage's neighbours of each kind: float32 0 or 1, shape (kinds, passages, passages).

    Kinds: the same hints in any order; these with the same last hint; before or after it in the tree; its hints except
    some; its hints and more; at most a hint more or fewer with the same last hint; as many hints, one of them another.
    A passage is not its own neighbour.
    """
    table, has = permutation_table(hints), membership(hints).astype(np.int64)
    common, sizes, last = has @ has.T, table.hints.astype(np.int64), last_hints(table)
    apart = sizes[:, None] + sizes - 2 * common
    same_last = last[:, None] == last
    before = np.zeros((len(table), len(table)), dtype=bool)
    for column in ancestors(hints).T:
        rows = np.flatnonzero(column >= 0)
        before[rows, column[rows]] = True
    fewer = (common == sizes) & (sizes < sizes[:, None])
    kinds = [
        apart == 0,
        (apart == 0) & same_last,
        before | before.T,
        fewer,
        fewer.T,
        (apart <= 1) & same_last,
        (apart == 2) & (sizes[:, None] == sizes),
    ]
    return (np.stack(kinds) & ~np.eye(len(table), dtype=bool)).astype(np.float32)


def features(label_2: np.ndarray, firm: np.ndarray, evidence: np.ndarray, hints: int, share: float) -> np.ndarray:
    """Return the features of each passage, from the other passages of its question: float64, shape (questions,
    passages, features).

    ``evidence``: bool (questions, passages), the passages whose label may be used. ``label_2``: bool. ``firm``: float,
    1 where the first labeler was accepted, 1/2 where the second was, and so on. ``share``: of label 2 in the build.
    """
    count, positive = evidence.astype(np.float32), (evidence & label_2).astype(np.float32)
    others = count.sum(axis=1, keepdims=True) - count
    others_positive = positive.sum(axis=1, keepdims=True) - positive
    rate = (others_positive + share) / (others + 1)
    kinds = relations(hints)
    columns = [_log_odds((positive @ kind.T + _PRIOR * rate) / (count @ kind.T + _PRIOR)) for kind in kinds]
    weights = similarity(hints) * ~np.eye(count.shape[1], dtype=bool)
    near = positive @ weights
    columns.append(_log_odds((near + _DISTANT * rate) / (count @ weights + _DISTANT)))
    columns.append(((firm * positive) @ weights) / (near + _DISTANT))
    columns.append(np.broadcast_to(permutation_table(hints).hints.astype(np.float32), count.shape))
    return np.stack([_log_odds(rate), *columns], axis=-1).astype(np.float64)


def predict(label_2: np.ndarray, firm: np.ndarray, evidence: np.ndarray, hints: int) -> np.ndarray:
    """Return P(label 2) of all passages, by a logistic regression on :func:`features` fitted to the evidence:
    float64, shape (questions, passages), rounded to four digits.

    Where all known labels are the same, all passages get the share of label 2 (Laplace's rule).
    """
    from sklearn.linear_model import LogisticRegression

    total, positive = int(evidence.sum()), int((evidence & label_2).sum())
    share = (positive + 1) / (total + 2)
    if positive in (0, total):
        return np.full(evidence.shape, round(share, 4))
    pieces = [slice(start, start + _QUESTIONS_PER_PIECE) for start in range(0, len(evidence), _QUESTIONS_PER_PIECE)]
    step = -(-total // _ROWS)
    probabilities = np.empty(evidence.shape)
    with threadpool_limits(1):  # a sum in several threads depends on their number
        evidence_features = (
            features(label_2[piece], firm[piece], evidence[piece], hints, share)[evidence[piece]] for piece in pieces
        )
        rows = np.concatenate(list(evidence_features))[::step]
        labels = label_2[evidence][::step]
        centre, spread = rows.mean(axis=0), rows.std(axis=0) + 1e-6
        if labels.all() or not labels.any():
            return np.full(evidence.shape, round(share, 4))
        model = LogisticRegression(C=0.3, max_iter=500, tol=1e-9).fit((rows - centre) / spread, labels)
        weights, bias = model.coef_[0].round(5), model.intercept_[0].round(5)  # what the order of sums changes is less
        for piece in pieces:
            piece_features = features(label_2[piece], firm[piece], evidence[piece], hints, share)
            score = ((piece_features - centre) / spread * weights).sum(axis=-1) + bias
            probabilities[piece] = 1 / (1 + exp(-score))
    return probabilities.round(4)


def _log_odds(rate: np.ndarray) -> np.ndarray:
    rate = np.clip(rate, _LEAST, 1 - _LEAST)
    return log(rate / (1 - rate))

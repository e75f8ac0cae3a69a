"""Table 1: the rewards r(a, n) of all documents of a request at once, arrays of shape (K, N): arm a, rank n.

What depends on the documents observed before (novelty) is a separate factor; everything else is known before the
first pull.
"""

from __future__ import annotations

import numpy as np

from quit.common.arithmetic import exp, log, log2


def top_k(relevance: np.ndarray, lengths: np.ndarray, k: int) -> np.ndarray:
    """Return the mean relevance over the ranks n..n+k-1, cut where an arm's list (``lengths``, shape (K,)) ends.

    ``k = 1`` is the Bernoulli reward. A pull with k > 1 reads up to k - 1 labels past the document that it pays for.
    """
    arms, ranks = relevance.shape
    before = np.concatenate([np.zeros((arms, 1)), np.cumsum(relevance, axis=1)], axis=1)
    start = np.arange(ranks)
    end = np.minimum(start[None, :] + k, np.maximum(lengths, 0)[:, None])
    size = end - start
    sums = np.take_along_axis(before, np.maximum(end, 0), axis=1) - before[:, :-1]
    return np.where(size > 0, sums / np.maximum(size, 1), 0.0)


def rank_aware(relevance: np.ndarray) -> np.ndarray:
    """Return Rel / log2(n + 2), n from 0: the first rank keeps its relevance."""
    return relevance / log2(np.arange(relevance.shape[1]) + 2.0)


def ucb_term(ranks: int, c: float) -> np.ndarray:
    """Return c sqrt(log2(n + 1) / n) of the ranks n = 1..N, shape (N,).

    As n goes to 0 this tends to c sqrt(1 / ln 2), about 1.2 c, and not to infinity as the paper says: see
    :func:`index_bonus`.
    """
    n = np.arange(1, ranks + 1, dtype=np.float64)
    return c * np.sqrt(log2(n + 1) / n)


def index_bonus(ranks: int, c: float, unpulled: float) -> np.ndarray:
    """Return what the index form adds to theta after n = 0..N pulls, shape (N + 1,): at n = 0 ``unpulled``."""
    return np.concatenate([[unpulled], ucb_term(ranks, c)])


def novelty(nearest: np.ndarray) -> np.ndarray:
    """Return 1 - (max cos + 1) / 2, given the cosine to the nearest observed document."""
    return 1.0 - (nearest + 1.0) / 2.0


def concave_novelty(nearest: np.ndarray, a: float, b: float) -> np.ndarray:
    """Return exp(-a (max cos)^b), 1 where the maximum is negative."""
    power = exp(b * log(np.maximum(nearest, 1e-300)))
    return exp(-a * power)


def normalised(scores: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return scores scaled to 0..1 within the request; all 1 where all are equal, 0 past a list's end."""
    is_document = np.arange(scores.shape[1]) < lengths[:, None]
    if not is_document.any():
        return np.zeros_like(scores)
    low, high = scores[is_document].min(), scores[is_document].max()
    values = (scores - low) / (high - low) if high > low else np.ones_like(scores)
    return np.where(is_document, values, 0.0)

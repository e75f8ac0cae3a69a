"""Requests for tests: relevance by hand, or drawn."""

from collections.abc import Sequence
from itertools import count

import numpy as np

from quit.qa.bandits.request import Request


def request_of(
    relevance: Sequence[Sequence[float]],
    *,
    documents: Sequence[Sequence[int]] | None = None,
    scores: Sequence[Sequence[float]] | None = None,
    parents: Sequence[int] | None = None,
    vectors: np.ndarray | None = None,
    name: str = "q",
) -> Request:
    """Return a request whose arms may have lists of different lengths. Without ``documents`` all are distinct; each is
    its own nugget."""
    arms, ranks = len(relevance), max((len(row) for row in relevance), default=0)
    numbers = count()

    def padded(rows: Sequence[Sequence[float]], beyond: float) -> np.ndarray:
        return np.array([[*row, *[beyond] * (ranks - len(row))] for row in rows]).reshape(arms, ranks)

    rows = padded(documents or [[next(numbers) for _ in row] for row in relevance], -1).astype(np.int64)
    observed = padded(relevance, 0.0).astype(float)
    retrieval_scores = padded(scores or [range(ranks, ranks - len(row), -1) for row in relevance], 0.0).astype(float)
    relevant = (observed >= 0.5) & (rows >= 0)
    gold = np.unique(rows[relevant])
    texts, tree = tuple(f"arm {arm}" for arm in range(arms)), np.array([-1] * arms if parents is None else parents)
    known = {"observed": observed, "relevant": relevant, "gold": gold, "nuggets": np.eye(len(gold), dtype=bool)}
    return Request(name, name, texts, rows, retrieval_scores, parents=tree, vectors=vectors, **known)


def drawn(seed: int, arms: int = 4, ranks: int = 6, parents: Sequence[int] | None = None) -> Request:
    """Return a request with arms of unequal worth, shared documents and vectors."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, ranks + 1, arms)
    lengths[0] = ranks
    worth = rng.random(arms)
    documents = [rng.permutation(20)[:length].tolist() for length in lengths]
    good = set(rng.permutation(20)[:6].tolist())
    shown = zip(documents, worth, strict=True)
    relevance = [[float(d in good and rng.random() < w + 0.3) for d in row] for row, w in shown]
    pool = sorted({d for row in documents for d in row})
    vectors = rng.normal(size=(len(pool), 8))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    scores = [rng.random(length).tolist() for length in lengths]
    more = {"parents": parents, "vectors": vectors, "name": f"drawn-{seed}"}
    return request_of(relevance, documents=documents, scores=scores, **more)

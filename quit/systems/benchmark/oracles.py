"""What perfect systems would do: bounds on retrieval and reranking. Their scores come from the labels."""

from __future__ import annotations

import numpy as np

from quit.corpora.protocols import Ranking
from quit.systems.benchmark.task import ReleaseRelevance, Relevance

VERSION = 1


def oracle_retriever(relevance: ReleaseRelevance, query: int) -> Ranking:
    """Return every relevant passage (label 1 or 2) of a question in the order of its rows, all with one score: nothing
    but a reranker orders them (paper, section 5.3)."""
    own = relevance.own[query]
    places = np.flatnonzero(own > 0)
    return Ranking(relevance.groups[query] * len(own) + places, np.ones(len(places), dtype=np.float32))


def oracle_scores(relevance: Relevance, query: int, rows: np.ndarray) -> np.ndarray:
    """Return each passage's label as its score, float64: the order no reranker of these passages can beat."""
    return relevance.labels(query, rows).astype(np.float64)

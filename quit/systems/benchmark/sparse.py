"""BM25 over all passages at the cost of their subsets.

BM25 sees a bag of words, so the permutations of a subset have one score: 31 documents per question are
indexed, not 325. Document frequencies, the number of documents and the mean length count every permutation: scores are
those of an index of all passages.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from scipy import sparse

from quit.retrieval.lexical import best_with_ties, terms
from quit.retrieval.protocols import Ranking
from quit.systems.benchmark.plugins import PluginContext
from quit.systems.benchmark.task import Passages, expand

VERSION = 1


class Bm25Retriever:
    """Okapi BM25, Lucene's form: idf = ln(1 + (N - n + 0.5) / (n + 0.5)), k1 and b from the settings; Snowball stems,
    without our stop words (:func:`quit.retrieval.lexical.terms`).

    A passage that shares no term with the query is not retrieved.
    """

    def __init__(self, context: PluginContext) -> None:
        settings = context.settings.benchmark
        self._passages = context.passages
        self._k1, self._b = settings.k1, settings.b
        self.identity = f"bm25/{VERSION}/k1={self._k1:g},b={self._b:g}"

    def search(self, queries: Sequence[str], depth: int) -> list[Ranking]:
        """Return at most ``depth`` passages per query."""
        vocabulary, weights = self._index
        rankings = []
        for query in queries:
            term_ids = [vocabulary[term] for term in terms(query) if term in vocabulary]
            # A term asked twice counts twice, as in Lucene.
            scores = np.asarray(weights[term_ids].sum(axis=0)).ravel() if term_ids else np.zeros(0)
            units = best_with_ties(scores, depth)
            units = units[scores[units] > 0]
            rankings.append(expand(self._passages, units, scores[units], depth))
        return rankings

    @cached_property
    def _index(self) -> tuple[dict[str, int], sparse.csr_array]:
        """Vocabulary, and each term's weight in each subset: float64, shape (terms, groups * subsets)."""
        vocabulary, counts = term_counts(self._passages)
        copies = np.tile([len(members) for members in self._passages.members], self._passages.groups)
        documents = copies.sum()
        lengths = np.asarray(counts.sum(axis=0)).ravel()
        mean = float(lengths @ copies) / documents
        present = counts.copy()
        present.data = np.ones_like(present.data)
        containing = present @ copies
        idf = np.log1p((documents - containing + 0.5) / (containing + 0.5))
        weights = counts.tocoo()
        saturation = self._k1 * (1 - self._b + self._b * lengths[weights.col] / (mean or 1.0))
        data = idf[weights.row] * weights.data / (weights.data + saturation)
        return vocabulary, sparse.csr_array((data, (weights.row, weights.col)), shape=counts.shape)


def term_counts(passages: Passages) -> tuple[dict[str, int], sparse.csr_array]:
    """Return the vocabulary and how often each term occurs in each subset, float64, shape (terms, groups * subsets).

    Each part is split into terms once, and its counts are added up over the subsets that hold it.
    """
    vocabulary: dict[str, int] = {}
    rows, columns = array("q"), array("q")
    width = len(passages.subsets)
    for group in range(passages.groups):
        parts = [
            [vocabulary.setdefault(term, len(vocabulary)) for term in terms(text)] for text in passages.parts(group)
        ]
        for subset, members in enumerate(passages.subsets):
            for part in members:
                rows.extend(parts[part])
                columns.extend([group * width + subset] * len(parts[part]))
    shape = (max(1, len(vocabulary)), passages.groups * width)
    places = (np.array(rows, dtype=np.int64), np.array(columns, dtype=np.int64))
    return vocabulary, sparse.coo_array((np.ones(len(rows)), places), shape=shape).tocsr()  # duplicates are added up

"""BM25 over all passages at the cost of their subsets.

BM25 sees a bag of words, so the permutations of a subset have one score: 31 documents per question are
indexed, not 325. Document frequencies, the number of documents and the mean length count every permutation: scores are
those of an index of all passages.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from scipy import sparse

from quit.retrieval.lexical import Bm25, best_with_ties, term_counts
from quit.retrieval.protocols import Ranking
from quit.systems.benchmark.plugins import PluginContext
from quit.systems.benchmark.task import expand

VERSION = 2


class Bm25Retriever:
    """:class:`quit.retrieval.lexical.Bm25` of the subsets, k1 and b from the settings.

    A passage that shares no term with the query is not retrieved.
    """

    def __init__(self, context: PluginContext) -> None:
        settings = context.settings.benchmark
        self._passages = context.passages
        self._k1, self._b = settings.k1, settings.b
        self.identity = f"bm25/{VERSION}/k1={self._k1:g},b={self._b:g}"

    def search(self, queries: Sequence[str], depth: int) -> list[Ranking]:
        """Return at most ``depth`` passages per query."""
        rankings = []
        for query in queries:
            scores = self._index.scores(query)
            units = best_with_ties(scores, depth)
            units = units[scores[units] > 0]
            rankings.append(expand(self._passages, units, scores[units], depth))
        return rankings

    @cached_property
    def _index(self) -> Bm25:
        """The subsets' index. Each part is split into terms once; a subset's counts are the sums of its parts'."""
        passages = self._passages
        vocabulary, counts = term_counts(part for group in range(passages.groups) for part in passages.parts(group))
        parts = np.zeros((len(passages.subsets), counts.shape[0] // passages.groups), dtype=np.float32)
        for subset, members in enumerate(passages.subsets):
            parts[subset, list(members)] = 1
        of_subsets = sparse.kron(sparse.eye_array(passages.groups), parts, format="csr") @ counts
        copies = np.tile([float(len(members)) for members in passages.members], passages.groups)
        return Bm25.of_counts(vocabulary, of_subsets, copies, k1=self._k1, b=self._b)

"""Retrievers over all passages: BM25 at the cost of their subsets, and exact dense search.

BM25 sees a bag of words, so the permutations of a subset have one score: of QUIT's 325 passages per question 31 are
indexed. Document frequencies, the number of documents and the mean length count every permutation: scores are those of
an index of all passages.

Word order changes a vector, so every permutation is encoded (``granularity = "permutation"``). At the paper's size that
is 2.4 million texts; ``subset`` encodes each subset once, as its first passage (of QUIT that in rank order), and gives
all its permutations that score. The vectors are streamed from files and never held together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, partial

import numpy as np

from quit.common.arrays import stored_array
from quit.common.ids import content_hash
from quit.errors import InputError
from quit.qa.benchmark.passages import expand
from quit.qa.benchmark.plugins import PluginContext
from quit.qa.indexes.encoders import DenseEncoder, EmbeddedEncoder, SentenceEncoder
from quit.qa.indexes.vectors import check_finite
from quit.qa.settings import FirstStages
from quit.retrieval.lexical import Bm25, term_counts
from quit.retrieval.protocols import Ranking
from quit.retrieval.search import best_with_ties, nearest
from quit.text.words import split_names

BM25_VERSION, DENSE_VERSION = 2, 1


class Bm25Retriever:
    """:class:`quit.retrieval.lexical.Bm25` of the subsets, k1 and b from the settings.

    A passage that shares no term with the query is not retrieved.
    """

    def __init__(self, context: PluginContext) -> None:
        settings = context.settings.benchmark
        self._passages = context.passages
        self._k1, self._b = settings.k1, settings.b
        self.identity = f"bm25/{BM25_VERSION}/k1={self._k1:g},b={self._b:g}"

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
        passages, units = self._passages, self._passages.units
        vocabulary, counts = term_counts(part for group in range(passages.groups) for part in passages.parts(group))
        return Bm25.of_counts(vocabulary, units.parts @ counts, np.diff(units.rows.indptr), k1=self._k1, b=self._b)


class DenseRetriever:
    """Exact nearest neighbours by inner product. ``of_passages``: the passages' encoder, where it is another."""

    def __init__(self, context: PluginContext, encoder: DenseEncoder, of_passages: DenseEncoder | None = None) -> None:
        settings = context.settings.benchmark
        self._passages, self._queries, self._encoder = context.passages, encoder, of_passages or encoder
        self._chunk = settings.chunk
        self._granularity = settings.granularity if len(context.passages) > context.passages.groups else "permutation"
        encoders = "+".join(each.identity for each in (encoder, of_passages) if each)
        self.identity = f"dense/{DENSE_VERSION}/{encoders}/{self._granularity}/batch={settings.batch}"
        self._folder = context.cache / content_hash(self.identity, context.passages.identity, self._chunk)

    def search(self, queries: Sequence[str], depth: int) -> list[Ranking]:
        """Return the ``depth`` passages with the highest inner products. Raises ``InputError`` for NaN."""
        vectors = self._queries.queries(queries)
        check_finite(vectors, self._queries.name, lambda row: queries[row])
        rankings = nearest(vectors, self._vectors, depth)
        if self._granularity == "subset":
            return [expand(self._passages, units, scores, depth) for units, scores in rankings]
        return [Ranking(rows, scores) for rows, scores in rankings]

    def _vectors(self) -> Iterator[np.ndarray]:
        """Yield the vectors of all passages, or of all subsets, in pieces; no text is made of what is on disk."""
        rows, size = range(len(self._passages)), self._chunk
        if self._granularity == "subset":
            rows = self._passages.units.firsts.tolist()
            of_group = -(-len(rows) // self._passages.groups)
            size = max(1, size // of_group) * of_group  # of QUIT all subsets of some questions
        for number, start in enumerate(range(0, len(rows), size)):
            part = partial(self._encode, rows[start : start + size])
            yield stored_array(self._folder / f"{number:06d}.npy", part)

    def _encode(self, rows: Sequence[int]) -> np.ndarray:
        texts = self._passages.texts(rows)
        vectors = self._encoder.documents(texts)
        check_finite(vectors, self._encoder.name, lambda row: texts[row])
        return vectors


class MiniLMRetriever(DenseRetriever):
    """all-MiniLM-L6-v2 as it ships with the program."""

    def __init__(self, context: PluginContext) -> None:
        # Not the run's caching encoder: millions of passages would only push hints out of it.
        super().__init__(context, EmbeddedEncoder(FirstStages(device="cpu")))


class SentenceRetriever(DenseRetriever):
    """Any encoder (:func:`quit.models.encoders.sentence.load_encoder`), ``dense:MODEL``; two towers such as DPR are
    ``dense:QUERY_MODEL,PASSAGE_MODEL``.

    Raises ``InputError`` where no model is named or it cannot be loaded.
    """

    def __init__(self, context: PluginContext) -> None:
        names = split_names(context.argument)
        if not 1 <= len(names) <= 2:
            raise InputError("Name the model of a dense retriever: dense:MODEL, or dense:QUERY_MODEL,PASSAGE_MODEL.")
        settings = context.settings.benchmark
        encoder_of = partial(
            SentenceEncoder, settings=context.running, pooling=settings.pooling, similarity=settings.similarity
        )
        encoder = encoder_of(names[0], prompt=settings.query_prompts.get(names[0]))
        super().__init__(context, encoder, *map(encoder_of, names[1:]))

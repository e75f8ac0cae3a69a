"""Searches for the nearest others of each document: over vectors (exact, or faiss), tokens, or a first stage."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from quit.common.extras import importing
from quit.common.progress import note
from quit.errors import SettingsError
from quit.qa.corpora.late import LATE_SAMPLE, CorpusTokens, LateSearch
from quit.qa.indexes.built import BuiltCorpus
from quit.qa.indexes.encoders import dense_encoder, device_of, encoder_kind, late_encoder
from quit.qa.indexes.exact import ExactSearch, Exclusions
from quit.qa.indexes.first_stage import build_first_stage, encoder_identity
from quit.qa.indexes.vectors import encode_corpus
from quit.qa.settings import FirstStages, Graph
from quit.retrieval.protocols import FirstStage

EXACT_UP_TO = 600_000
"""Documents up to which the method ``auto`` searches exactly."""
HNSW_LINKS, HNSW_BUILD, HNSW_SEARCH = 32, 200, 256
"""faiss: links per node, efConstruction, efSearch."""


class Search(Protocol):
    """A way to the ``k`` nearest others of each document."""

    def rows(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Return (neighbours: int64, -1 where there are fewer; weights: float32), shapes (stop - start, k)."""

    def recall(self, rows: np.ndarray, neighbours: np.ndarray) -> float | None:
        """Return the mean share of the true neighbours of ``rows`` among those given, shape (len(rows), k); None where
        nobody knows the true ones."""


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The ``k`` nearest others of each document of ``corpus``, to be searched.

    ``facts``: what the results depend on; ``first_stages``: those of these settings that they may depend on.
    ``prepare`` encodes what is not encoded yet and returns the search; it raises :class:`quit.errors.InputError` for
    NaN. ``truth``: what :meth:`Search.recall` compares with; ``max_sampled``: for how many documents at most (None: no
    bound).
    """

    corpus: BuiltCorpus
    k: int
    facts: Mapping[str, Any]
    first_stages: Mapping[str, Any]
    prepare: Callable[[], Search]
    truth: str
    max_sampled: int | None = None


def make_neighbours(
    corpus: BuiltCorpus, encoder: str, k: int, out: Path, settings: Graph, stages: FirstStages
) -> Neighbours:
    """Return the way that encoder and settings name; nothing is encoded yet.

    Raises :class:`SettingsError` for ``cross_question_only`` over a corpus without a release, and what loading an
    encoder raises.
    """
    excluded = _same_question(corpus) if settings.cross_question_only else None
    kind, first_stages = encoder_kind(encoder), stages.model_dump(mode="json")
    facts: dict[str, Any] = {"encoder": encoder, "cross_question_only": settings.cross_question_only}
    if kind in ("bm25", "sparse"):
        bm25 = {"k1": stages.bm25_k1, "b": stages.bm25_b}
        facts["method"] = "first stage"
        facts |= bm25 if kind == "bm25" else {"identity": encoder_identity(encoder, stages)}

        def by_documents() -> Search:
            stage = build_first_stage(corpus, encoder, out / "index", stages)
            return _StageSearch(k, excluded, corpus, stage, stages.batch)

        return Neighbours(corpus, k, facts, first_stages, by_documents, "nothing: the search is exact")
    if kind == "late":
        late, candidates = late_encoder(encoder, stages), settings.late_candidates
        facts |= {"identity": late.identity, "method": "maxsim", "late_candidates": candidates}

        def by_tokens() -> Search:
            tokens = CorpusTokens(corpus, late, out / "tokens")
            return LateSearch(tokens, k, candidates, device=device_of(stages), excluded=excluded)

        return Neighbours(corpus, k, facts, first_stages, by_tokens, "MaxSim with every document", LATE_SAMPLE)
    dense, method = dense_encoder(encoder, stages), settings.method
    if method == "auto":
        method = "exact" if len(corpus) <= EXACT_UP_TO else "faiss"
    precision = settings.precision if method == "exact" else "fp32"
    facts |= {"identity": dense.identity, "method": method, **({"precision": precision} if method == "exact" else {})}
    if method == "faiss":
        _faiss()  # a missing package is reported before hours of encoding

    def by_vectors() -> Search:
        matrix = encode_corpus(corpus, dense, out / "vectors").matrix
        exact = ExactSearch(matrix, k, precision=precision, device=device_of(stages), excluded=excluded)
        if method == "exact":
            return exact
        note(f"faiss: indexing {len(matrix):,} documents")
        return _FaissSearch(k, excluded, matrix, _hnsw(matrix), exact)

    return Neighbours(corpus, k, facts, first_stages, by_vectors, "exact search in fp32")


def _same_question(corpus: BuiltCorpus) -> Exclusions:
    groups = corpus.groups()
    if groups is None:
        raise SettingsError(
            f"graph.cross_question_only is on, but the corpus {corpus.path} has no documents of a QUIT release."
        )
    return Exclusions(groups, len(corpus))


@dataclass(frozen=True, eq=False)
class _DeepSearch:
    """Searches deep enough that k are left without the document itself and the excluded ones."""

    k: int
    excluded: Exclusions | None

    @property
    def depth(self) -> int:
        """How many documents to search for."""
        return self.k + (self.excluded.max_excluded if self.excluded else 1)

    def allowed(self, neighbours: np.ndarray, weights: np.ndarray, start: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the first k neighbours of rows from ``start`` that are not the document itself nor excluded.

        ``neighbours``: int64, shape (m, any), -1 where there is none; ``weights``: float32, the same shape.
        """
        forbidden = (neighbours < 0) | (neighbours == np.arange(start, start + len(neighbours))[:, None])
        if self.excluded is not None:
            for row in range(len(neighbours)):
                forbidden[row] |= np.isin(neighbours[row], self.excluded.of(start + row))
        order = np.argsort(forbidden, axis=1, kind="stable")[:, : self.k]
        forbidden = np.take_along_axis(forbidden, order, axis=1)
        first = np.where(forbidden, -1, np.take_along_axis(neighbours, order, axis=1))
        values = np.where(forbidden, np.float32(0), np.take_along_axis(weights, order, axis=1))
        short = ((0, 0), (0, max(0, self.k - first.shape[1])))
        return np.pad(first, short, constant_values=-1), np.pad(values, short)


@dataclass(frozen=True, eq=False)
class _FaissSearch(_DeepSearch):
    """Dense vectors past the size for exact search. ``index``: faiss's, of ``matrix``; ``exact``: of the same."""

    matrix: np.ndarray
    index: Any
    exact: ExactSearch

    def rows(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        depth = min(self.depth, len(self.matrix))
        weights, neighbours = self.index.search(np.array(self.matrix[start:stop]), depth)
        return self.allowed(neighbours.astype(np.int64), weights, start)

    def recall(self, rows: np.ndarray, neighbours: np.ndarray) -> float:
        return self.exact.recall(rows, neighbours)


def _faiss() -> Any:
    with importing("graph.method=faiss"):
        import faiss
    return faiss


def _hnsw(matrix: np.ndarray) -> Any:
    faiss = _faiss()
    index = faiss.IndexHNSWFlat(matrix.shape[1], HNSW_LINKS, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction = HNSW_BUILD
    for start in range(0, len(matrix), 16_384):
        index.add(np.array(matrix[start : start + 16_384]))
    index.hnsw.efSearch = HNSW_SEARCH
    return index


@dataclass(frozen=True, eq=False)
class _StageSearch(_DeepSearch):
    """BM25 or a sparse encoder: the document is its own query; ``batch`` of them at a time."""

    corpus: BuiltCorpus
    stage: FirstStage
    batch: int

    def rows(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        neighbours = np.full((stop - start, self.depth), -1, dtype=np.int64)
        weights = np.zeros((stop - start, self.depth), dtype=np.float32)
        for low in range(start, stop, self.batch):
            texts = self.corpus.text_range(low, min(low + self.batch, stop))
            for offset, ranking in enumerate(self.stage.search(texts, self.depth), start=low - start):
                neighbours[offset, : len(ranking)], weights[offset, : len(ranking)] = ranking.rows, ranking.scores
        return self.allowed(neighbours, weights, start)

    def recall(self, rows: np.ndarray, neighbours: np.ndarray) -> float:
        return 1.0

"""Ways to a document's neighbours: exact search over vectors, faiss, late interaction, or a sparse first stage."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from quit.corpora.built import BuiltCorpus
from quit.corpora.encoders import dense_encoder, device_of, late_encoder
from quit.corpora.first_stage import build_first_stage
from quit.corpora.late import LateNeighbours
from quit.corpora.protocols import FirstStage
from quit.corpora.search import ExactSearch, Exclusions, Wanted
from quit.corpora.vectors import encode_corpus
from quit.errors import MissingDependency, SettingsError
from quit.settings import FirstStages, Graph

Say = Callable[[str], None]


class Neighbours(Protocol):
    """One way. ``facts``: what its results depend on. ``truth``: what :meth:`recall` compares with."""

    facts: dict[str, Any]
    truth: str

    @property
    def most_sampled(self) -> int | None:
        """The most documents that :meth:`recall` is asked of; None or 0: no bound of its own."""
        ...

    def prepare(self, say: Say) -> None:
        """Encode what is not encoded yet. Raises :class:`quit.errors.InputError` for NaN."""
        ...

    def rows(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Return (neighbours: int64, -1 where there are fewer; weights: float32), shapes (stop - start, k)."""
        ...

    def recall(self, rows: np.ndarray, neighbours: np.ndarray) -> float:
        """Return the mean share of the true neighbours among those given."""
        ...


def make_neighbours(
    corpus: BuiltCorpus, encoder: str, k: int, out: Path, settings: Graph, stages: FirstStages
) -> Neighbours:
    """Return the way that encoder and settings name; nothing is encoded yet.

    Raises :class:`SettingsError` for ``cross_question_only`` over a corpus without a release, and what loading an
    encoder raises.
    """
    excluded = None
    if settings.cross_question_only:
        groups = corpus.groups()
        if groups is None:
            raise SettingsError(
                f"graph.cross_question_only is on, but the corpus {corpus.path} has no documents of a QUIT release."
            )
        excluded = Exclusions(groups, len(corpus))
    wanted = Wanted(corpus, encoder, k, out, settings, stages, excluded)
    if encoder == "bm25" or encoder.startswith("sparse:"):
        return _FromStage(wanted)
    if encoder.startswith("late:"):
        return LateNeighbours(wanted, late_encoder(encoder, stages))
    return _FromVectors(wanted)


class _FromVectors:
    """Dense vectors: exact up to a size, else faiss."""

    most_sampled = None
    truth = "exact search in fp32"

    def __init__(self, wanted: Wanted) -> None:
        self._wanted, settings = wanted, wanted.settings
        self._encoder = dense_encoder(wanted.encoder, wanted.stages)
        self._method = settings.method
        if self._method == "auto":
            self._method = "exact" if len(wanted.corpus) <= settings.exact_up_to else "faiss"
        numbers = ("precision", "rescored") if self._method == "exact" else ("hnsw_links", "hnsw_build", "hnsw_search")
        chosen = {name: getattr(settings, name) for name in numbers}
        if chosen.get("precision") == "fp32":
            del chosen["rescored"]
        self.facts = {**wanted.facts, "identity": self._encoder.identity, "method": self._method, **chosen}
        if self._method == "faiss":
            _faiss()  # a missing package is reported before hours of encoding

    def prepare(self, say: Say) -> None:
        wanted, settings = self._wanted, self._wanted.settings
        vectors = encode_corpus(wanted.corpus, self._encoder, wanted.out / "vectors", wanted.stages.block, say)
        device = device_of(wanted.stages)
        self._exact = ExactSearch(
            vectors.matrix,
            wanted.k,
            precision=settings.precision if self._method == "exact" else "fp32",
            rescored=settings.rescored,
            score_mb=settings.score_mb if device == "cpu" else settings.score_mb_gpu,
            device=device,
            excluded=wanted.excluded,
        )
        self._matrix = vectors.matrix
        if self._method == "faiss":
            say(f"faiss: indexing {len(vectors.matrix):,} documents")
            self._index = _hnsw(vectors.matrix, settings)

    def rows(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        if self._method == "exact":
            return self._exact.rows(start, stop)
        depth = min(self._wanted.depth, len(self._matrix))
        weights, neighbours = self._index.search(np.array(self._matrix[start:stop]), depth)
        return kept(neighbours.astype(np.int64), weights, start, self._wanted)

    def recall(self, rows: np.ndarray, neighbours: np.ndarray) -> float:
        return self._exact.recall(rows, neighbours)


def _faiss() -> Any:
    try:
        import faiss
    except ImportError:
        raise MissingDependency(
            "graph.method=faiss needs faiss. Run: pip install -c constraints.txt -e '.[retrieval]', "
            "or set graph.method=exact"
        ) from None
    return faiss


def _hnsw(matrix: np.ndarray, settings: Graph) -> Any:
    faiss = _faiss()
    index = faiss.IndexHNSWFlat(matrix.shape[1], settings.hnsw_links, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction = settings.hnsw_build
    for start in range(0, len(matrix), 16_384):
        index.add(np.array(matrix[start : start + 16_384]))
    index.hnsw.efSearch = settings.hnsw_search
    return index


class _FromStage:
    """BM25 or a sparse encoder: the document is its own query."""

    most_sampled = 0
    truth = "nothing: the search is exact"

    def __init__(self, wanted: Wanted) -> None:
        self._wanted, stages = wanted, wanted.stages
        bm25 = {"k1": stages.bm25_k1, "b": stages.bm25_b}
        numbers = bm25 if wanted.encoder == "bm25" else {"precision": stages.precision}
        self.facts = {**wanted.facts, "method": "first stage", **numbers}
        self._stage: FirstStage | None = None

    def prepare(self, say: Say) -> None:
        wanted = self._wanted
        self._stage = build_first_stage(wanted.corpus, wanted.encoder, wanted.out / "index", wanted.stages, say)

    def rows(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        assert self._stage is not None
        wanted = self._wanted
        neighbours = np.full((stop - start, wanted.depth), -1, dtype=np.int64)
        weights = np.zeros((stop - start, wanted.depth), dtype=np.float32)
        for low in range(start, stop, wanted.stages.batch):
            texts = wanted.corpus.text_range(low, min(low + wanted.stages.batch, stop))
            for offset, ranking in enumerate(self._stage.search(texts, wanted.depth), start=low - start):
                neighbours[offset, : len(ranking)], weights[offset, : len(ranking)] = ranking.rows, ranking.scores
        return kept(neighbours, weights, start, wanted)

    def recall(self, rows: np.ndarray, neighbours: np.ndarray) -> float:
        return 1.0


def kept(neighbours: np.ndarray, weights: np.ndarray, start: int, wanted: Wanted) -> tuple[np.ndarray, np.ndarray]:
    """Return the first k neighbours of rows from ``start`` that are not the document itself nor excluded.

    ``neighbours``: int64, shape (m, at least k), -1 where there is none; ``weights``: float32, the same shape.
    """
    bad = (neighbours < 0) | (neighbours == np.arange(start, start + len(neighbours))[:, None])
    if wanted.excluded is not None:
        for row in range(len(neighbours)):
            bad[row] |= np.isin(neighbours[row], wanted.excluded.of(start + row))
    order = np.argsort(bad, axis=1, kind="stable")[:, : wanted.k]
    bad = np.take_along_axis(bad, order, axis=1)
    first = np.where(bad, -1, np.take_along_axis(neighbours, order, axis=1))
    values = np.where(bad, np.float32(0), np.take_along_axis(weights, order, axis=1))
    short = wanted.k - first.shape[1]
    return np.pad(first, ((0, 0), (0, max(short, 0))), constant_values=-1), np.pad(values, ((0, 0), (0, max(short, 0))))

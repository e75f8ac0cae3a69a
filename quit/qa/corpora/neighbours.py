"""Ways to a document's neighbours: exact search over vectors, faiss, late interaction, a sparse first stage, a file."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from quit.common.progress import note
from quit.errors import InputError, SettingsError, importing
from quit.qa.corpora.late import LateNeighbours
from quit.qa.indexes.built import BuiltCorpus
from quit.qa.indexes.encoders import dense_encoder, device_of, encoder_kind, late_encoder
from quit.qa.indexes.exact import ExactSearch, Exclusions, Neighbours
from quit.qa.indexes.first_stage import build_first_stage, encoder_identity
from quit.qa.indexes.rankings import read_rankings
from quit.qa.indexes.vectors import encode_corpus
from quit.qa.settings import FirstStages, Graph
from quit.retrieval.protocols import Ranking
from quit.sources.fields import plain
from quit.text.words import counted

HIGHEST_HALF = 65504.0
"""The largest float16: BM25's weights are cut there."""
LOWEST_HALF = 2.0**-14
"""The smallest float16 of full precision."""
EXACT_UP_TO = 600_000
"""Documents up to which the method ``auto`` searches exactly."""
HNSW_LINKS, HNSW_BUILD, HNSW_SEARCH = 32, 200, 256
"""faiss: links per node, efConstruction, efSearch."""


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
    arguments = (corpus, encoder, k, out, settings, stages, excluded)
    kind = encoder_kind(encoder)
    if kind in ("bm25", "sparse"):
        return _FromStage(*arguments)
    if kind == "late":
        return LateNeighbours(*arguments, tokens=late_encoder(encoder, stages))
    return _FromVectors(*arguments)


def read_neighbours(corpus: BuiltCorpus, path: Path, encoder: str, out: Path) -> Neighbours:
    """Return the neighbours that a file ranks (:func:`quit.qa.indexes.rankings.read_rankings`, of each document).

    The document itself is left out of its list; of two ids of one document the first has the list. ``k`` is the length
    of the longest. Raises :class:`InputError` as ``read_rankings``, and for a file without a neighbour.
    """
    rankings, rows = read_rankings(path, corpus), corpus.rows_by_id
    lists: dict[int, Ranking] = {}
    for name in filter(rows.__contains__, rankings.by_id):
        row, near = rows[name], rankings.by_id[name]
        others = near.rows != row
        lists.setdefault(row, Ranking(near.rows[others], near.scores[others]))
    k = max(map(len, lists.values()), default=0)
    if not k:
        raise InputError(f"{path} lists no neighbour of a document of the corpus {corpus.path}.")
    documents = rankings.documents | rankings.by_id.keys()
    neighbours = _FromFile(corpus, encoder, k, out, Graph(), FirstStages())
    highest = max(float(np.abs(near.scores).max(initial=0)) for near in lists.values())
    divisor = 1.0
    if highest > HIGHEST_HALF or 0 < highest < LOWEST_HALF:
        divisor = 2.0 ** math.ceil(math.log2(highest / HIGHEST_HALF))
        note(
            f"{path.name}: its highest score is {highest:g}, and float16 goes from {LOWEST_HALF:g} to "
            f"{HIGHEST_HALF:g}; all weights are divided by {divisor:g}.",
            loud=True,
        )
        neighbours.facts["weights_divided_by"] = divisor
    neighbours.lists = {
        row: Ranking(near.rows, (near.scores.astype(np.float64) / divisor).astype(np.float32))
        for row, near in lists.items()
    }
    sizes = [np.abs(near.scores[near.scores != 0]) for near in neighbours.lists.values()]
    if small := sum(int((size.astype(np.float16) == 0).sum()) for size in sizes):
        note(f"{path.name}: {counted(small, 'score')} too small for float16: weight 0.", loud=True)
    neighbours.facts |= {
        "method": "imported",
        "file": plain(path.name),
        "checksum": rankings.checksum,
        "file_documents": len(documents),
        "unknown_documents": len(documents - rows.keys()),
    }
    return neighbours


class _FromFile(Neighbours):
    """Lists of neighbours, by row."""

    truth = "nothing: the edges are a file's"
    lists: dict[int, Ranking]

    def prepare(self) -> None:
        """Nothing is encoded."""

    def rows(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        edges = np.full((stop - start, self.k), -1, dtype=np.int64)
        weights = np.zeros((stop - start, self.k), dtype=np.float32)
        for row in filter(self.lists.__contains__, range(start, stop)):
            near = self.lists[row]
            edges[row - start, : len(near)], weights[row - start, : len(near)] = near.rows, near.scores
        return edges, weights

    def recall(self, rows: np.ndarray, neighbours: np.ndarray) -> None:
        return None


class _FromVectors(Neighbours):
    """Dense vectors: exact up to a size, else faiss."""

    truth = "exact search in fp32"

    def __post_init__(self) -> None:
        super().__post_init__()
        settings = self.settings
        self._encoder = dense_encoder(self.encoder, self.stages)
        self._method = settings.method
        if self._method == "auto":
            self._method = "exact" if len(self.corpus) <= EXACT_UP_TO else "faiss"
        precision = {"precision": settings.precision} if self._method == "exact" else {}
        self.facts |= {"identity": self._encoder.identity, "method": self._method, **precision}
        if self._method == "faiss":
            _faiss()  # a missing package is reported before hours of encoding

    def prepare(self) -> None:
        settings = self.settings
        self._matrix = encode_corpus(self.corpus, self._encoder, self.out / "vectors").matrix
        self._exact = ExactSearch(
            self._matrix,
            self.k,
            precision=settings.precision if self._method == "exact" else "fp32",
            device=device_of(self.stages),
            excluded=self.excluded,
        )
        if self._method == "faiss":
            note(f"faiss: indexing {len(self._matrix):,} documents")
            self._index = _hnsw(self._matrix)

    def rows(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        if self._method == "exact":
            return self._exact.rows(start, stop)
        depth = min(_depth(self), len(self._matrix))
        weights, neighbours = self._index.search(np.array(self._matrix[start:stop]), depth)
        return _allowed(neighbours.astype(np.int64), weights, start, self)

    def recall(self, rows: np.ndarray, neighbours: np.ndarray) -> float:
        return self._exact.recall(rows, neighbours)


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


class _FromStage(Neighbours):
    """BM25 or a sparse encoder: the document is its own query."""

    def __post_init__(self) -> None:
        super().__post_init__()
        bm25: dict[str, Any] = {"k1": self.stages.bm25_k1, "b": self.stages.bm25_b}
        facts = (
            bm25 if encoder_kind(self.encoder) == "bm25" else {"identity": encoder_identity(self.encoder, self.stages)}
        )
        self.facts |= {"method": "first stage", **facts}

    def prepare(self) -> None:
        self._stage = build_first_stage(self.corpus, self.encoder, self.out / "index", self.stages)

    def rows(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        depth = _depth(self)
        neighbours = np.full((stop - start, depth), -1, dtype=np.int64)
        weights = np.zeros((stop - start, depth), dtype=np.float32)
        for low in range(start, stop, self.stages.batch):
            texts = self.corpus.text_range(low, min(low + self.stages.batch, stop))
            for offset, ranking in enumerate(self._stage.search(texts, depth), start=low - start):
                neighbours[offset, : len(ranking)], weights[offset, : len(ranking)] = ranking.rows, ranking.scores
        return _allowed(neighbours, weights, start, self)


def _depth(search: Neighbours) -> int:
    """Return how many documents to search for: k are left without the document itself and the excluded ones."""
    return search.k + (search.excluded.most if search.excluded else 1)


def _allowed(
    neighbours: np.ndarray, weights: np.ndarray, start: int, search: Neighbours
) -> tuple[np.ndarray, np.ndarray]:
    """Return the first k neighbours of rows from ``start`` that are not the document itself nor excluded.

    ``neighbours``: int64, shape (m, any), -1 where there is none; ``weights``: float32, the same shape.
    """
    bad = (neighbours < 0) | (neighbours == np.arange(start, start + len(neighbours))[:, None])
    if search.excluded is not None:
        for row in range(len(neighbours)):
            bad[row] |= np.isin(neighbours[row], search.excluded.of(start + row))
    order = np.argsort(bad, axis=1, kind="stable")[:, : search.k]
    bad = np.take_along_axis(bad, order, axis=1)
    first = np.where(bad, -1, np.take_along_axis(neighbours, order, axis=1))
    values = np.where(bad, np.float32(0), np.take_along_axis(weights, order, axis=1))
    short = ((0, 0), (0, max(0, search.k - first.shape[1])))
    return np.pad(first, short, constant_values=-1), np.pad(values, short)

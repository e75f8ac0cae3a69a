"""Hybrid search in memory, for difficulty: BM25 and a dense encoder, their rankings fused by reciprocal rank.

Indexes on disk over a built corpus are :mod:`quit.qa.indexes.first_stage`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Protocol

import numpy as np

from quit.common.arrays import stored_array
from quit.common.ids import content_hash
from quit.models.protocols import Encoder
from quit.retrieval.lexical import Bm25
from quit.retrieval.protocols import FirstStage, Ranking
from quit.retrieval.search import nearest

CHUNK = 8192
"""Documents encoded, stored and searched at a time: bounds memory."""
FUSION = 60
"""Added to every rank in reciprocal rank fusion, as in the paper."""
FUSED = 100
"""Documents that each stage gives to a fusion, at least."""


class Texts(Protocol):
    """Texts to search: a list, or a :class:`quit.retrieval.corpus.Corpus`."""

    def __len__(self) -> int: ...

    def __getitem__(self, row: int) -> str: ...

    def __iter__(self) -> Iterator[str]: ...


class Bm25Stage:
    """BM25 over stemmed words."""

    def __init__(self, index: Bm25, identity: str) -> None:
        self.identity = identity
        self._index = index

    def search(self, queries: Sequence[str], depth: int) -> list[Ranking]:
        """Return at most ``depth`` documents per query, those that share a term with it."""
        return [Ranking(*self._index.search(query, depth)) for query in queries]


class FusedStage:
    """Several first stages, joined by reciprocal rank (Cormack et al. 2009): of each its best ``depth`` documents,
    :data:`FUSED` at least, so that a shorter list is the beginning of a longer one up to there."""

    def __init__(self, stages: Sequence[FirstStage]) -> None:
        self._stages = tuple(stages)
        self.identity = f"rrf/{FUSION}/{FUSED}({', '.join(stage.identity for stage in stages)})"

    def search(self, queries: Sequence[str], depth: int) -> list[Ranking]:
        """Return at most ``depth`` documents per query."""
        rankings = [stage.search(queries, max(FUSED, depth)) for stage in self._stages]
        return [Ranking(*fused([ranking.rows for ranking in row], depth)) for row in zip(*rankings, strict=True)]


def fused(rankings: Iterable[np.ndarray], count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows (int64) and scores (float32) of rankings joined by reciprocal rank (Cormack et al. 2009), ties by
    row.

    ``rankings``: rows, best first.
    """
    score: dict[int, float] = {}
    for ranking in rankings:
        for rank, row in enumerate(ranking.tolist(), start=1):
            score[row] = score.get(row, 0.0) + 1.0 / (FUSION + rank)
    rows = sorted(score, key=lambda row: (-score[row], row))[:count]
    return np.array(rows, dtype=np.int64), np.array([score[row] for row in rows], dtype=np.float32)


class _Nearest:
    """Exact dense search over vectors in memory or memory-mapped."""

    def __init__(self, encoder: Encoder, chunks: Sequence[np.ndarray]) -> None:
        self.identity = encoder.identity
        self._encoder, self._chunks = encoder, chunks

    def search(self, queries: Sequence[str], depth: int) -> list[Ranking]:
        return [Ranking(*pair) for pair in nearest(self._encoder.encode(queries), lambda: self._chunks, depth)]


class HybridIndex:
    """First stage over texts.

    ``cache``: a folder in which encodings are kept by content, one file per chunk (None: memory).
    """

    def __init__(self, texts: Texts, encoder: Encoder, cache: Path | None = None) -> None:
        self.texts = texts
        self._encoder = encoder
        source = iter(texts)
        self._chunks = [self._encoded(part, cache) for part in iter(lambda: list(islice(source, CHUNK)), [])]
        self._stage = FusedStage([Bm25Stage(Bm25.of(texts), "bm25"), _Nearest(encoder, self._chunks)])

    def __len__(self) -> int:
        return len(self.texts)

    def search(self, questions: Sequence[str], count: int) -> list[np.ndarray]:
        """Return for each question the rows of its ``count`` best texts, best first; ties go to the earlier text."""
        return [ranking.rows for ranking in self._stage.search(questions, count)]

    def vectors(self, rows: np.ndarray) -> np.ndarray:
        """Return the unit vectors of some texts, shape (len(rows), dimension), float32."""
        vectors = [self._chunks[row // CHUNK][row % CHUNK] for row in rows]
        return np.array(vectors, dtype=np.float32).reshape(len(rows), self._encoder.dimension)

    def _encoded(self, part: list[str], cache: Path | None) -> np.ndarray:
        if cache is None:
            return self._encoder.encode(part)
        name = content_hash(self._encoder.identity, part)
        return stored_array(cache / f"{name}.npy", lambda: self._encoder.encode(part))

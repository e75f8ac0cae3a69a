"""Protocols of retrieval: the documents of a corpus, a first stage over them, a neighbourhood graph, a scorer.

Everywhere a document is its **row** in the corpus (0-based, the order of its documents table); ids are looked up at the
edges.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """Documents of one query, best first, ties by row. ``rows``: int64, ``scores``: float32, shapes (n,)."""

    rows: np.ndarray
    scores: np.ndarray

    def __len__(self) -> int:
        return len(self.rows)


@runtime_checkable
class Documents(Protocol):
    """The documents of a corpus."""

    @property
    def identity(self) -> str:
        """Changes with any document."""

    def __len__(self) -> int: ...

    def ids(self, rows: Sequence[int]) -> list[str]:
        """Return the documents' ids."""

    def texts(self, rows: Sequence[int]) -> list[str]:
        """Return what systems read: title, one space and text (the text alone where there is no title)."""


@runtime_checkable
class FirstStage(Protocol):
    """A retriever over a whole corpus: BM25, a sparse or a dense encoder's index."""

    identity: str

    def search(self, queries: Sequence[str], depth: int) -> list[Ranking]:
        """Return at most ``depth`` documents per query. A query that matches nothing has an empty ranking."""


@runtime_checkable
class NeighbourGraph(Protocol):
    """Each document's nearest others, directed, itself excluded."""

    @property
    def identity(self) -> str:
        """Changes with any edge."""

    def __len__(self) -> int: ...

    def neighbours(self, row: int, k: int) -> np.ndarray:
        """Return the rows of at most ``k`` neighbours, nearest first, int64."""


@runtime_checkable
class Scorer(Protocol):
    """The relevance of texts to a query: a cross-encoder, or late interaction."""

    identity: str

    def score(self, query: str, texts: Sequence[str]) -> np.ndarray:
        """Return one score per text, float64, shape (len(texts),); any real number, higher is more relevant."""

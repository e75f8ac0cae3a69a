"""Postings (for each term the texts that have it, with their weights), and BM25 over stemmed words by these: in memory,
or saved and memory-mapped."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from quit.common.files import read_json, replacing, write_json, writing
from quit.retrieval.search import best
from quit.text.tokens import STOP_WORDS, stem, words

if TYPE_CHECKING:  # SciPy is a seventh of the time to import the stages
    from scipy import sparse

K1, B = 1.2, 0.75
"""Lucene's defaults."""


class Postings:
    """``bounds``: integers, terms + 1. ``rows``: int32, texts ascending in each term. ``weights``: float32."""

    def __init__(self, bounds: np.ndarray, rows: np.ndarray, weights: np.ndarray, texts: int) -> None:
        self._bounds, self._rows, self._weights, self._texts = bounds, rows, weights, texts

    @classmethod
    def of(cls, weights: np.ndarray, terms: np.ndarray, bounds: np.ndarray, shape: tuple[int, int]) -> Postings:
        """Turn texts into postings: ``bounds`` has where each text's terms and weights end; ``shape``: texts, terms."""
        from scipy import sparse

        columns = sparse.csr_array((weights, terms, bounds), shape=shape).tocsc()
        return cls(columns.indptr, columns.indices.astype(np.int32, copy=False), columns.data, shape[0])

    @classmethod
    def load(cls, folder: Path) -> Postings:
        """Open the postings of a folder, memory-mapped."""
        names = ("bounds", "rows", "weights")
        # As plain arrays, which are mapped just so: each slice of a numpy.memmap takes microseconds.
        bounds, rows, weights = (np.asarray(np.load(folder / f"{name}.npy", mmap_mode="r")) for name in names)
        return cls(bounds, rows, weights, read_json(folder / "postings.json")["texts"])

    def save(self, folder: Path) -> None:
        """Write the postings to a folder. Raises :class:`quit.errors.WorkspaceError` where the disk refuses."""
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
            for name, values in (("bounds", self._bounds), ("rows", self._rows), ("weights", self._weights)):
                with replacing(folder / f"{name}.npy") as temporary, temporary.open("wb") as file:
                    np.save(file, values)
        write_json(folder / "postings.json", {"texts": self._texts})

    def scores(self, terms: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the dot product of a query with every text, float32; a term may occur more than once."""
        scores = np.zeros(self._texts, dtype=np.float32)
        lows, highs = self._bounds[terms].tolist(), self._bounds[terms + 1].tolist()
        for low, high, weight in zip(lows, highs, weights.astype(np.float32), strict=True):
            scores[self._rows[low:high]] += weight * self._weights[low:high]
        return scores


class Bm25:
    """BM25 over texts in Lucene's form (Kamphuis et al. 2020), without its factor k1 + 1.

    A text without a term of the query is never found; ties by row.
    """

    def __init__(self, vocabulary: dict[str, int], postings: Postings) -> None:
        self._vocabulary, self._postings = vocabulary, postings

    @classmethod
    def of(cls, texts: Iterable[str], *, k1: float = K1, b: float = B) -> Bm25:
        """Index texts, one at a time."""
        vocabulary, counts = term_counts(texts)
        return cls.of_counts(vocabulary, counts, np.ones(counts.shape[0]), k1=k1, b=b)

    @classmethod
    def of_counts(
        cls, vocabulary: dict[str, int], counts: sparse.csr_array, copies: np.ndarray, *, k1: float, b: float
    ) -> Bm25:
        """Index texts of which the ``counts`` of :func:`term_counts` are known; row i stands for ``copies[i]`` texts.

        A weight is idf * tf / (tf + k1 * (1 - b + b * length / mean)), where idf = ln(1 + (N - n + 0.5) / (n + 0.5)).
        """
        texts, sizes = copies.sum(), np.diff(counts.indptr)
        lengths = counts.sum(axis=1, dtype=np.float64)
        containing = np.bincount(counts.indices, np.repeat(copies, sizes), minlength=counts.shape[1])
        idf = np.log(1 + (texts - containing + 0.5) / (containing + 0.5)).astype(np.float32)
        mean = lengths @ copies / texts if lengths.any() else 1.0
        saturation = counts.data / (np.repeat(k1 * (1 - b + b * lengths / mean), sizes) + counts.data)
        weights = (idf[counts.indices] * saturation).astype(np.float32)
        return cls(vocabulary, Postings.of(weights, counts.indices, counts.indptr, counts.shape))

    @classmethod
    def load(cls, folder: Path) -> Bm25:
        """Return a saved index, its postings memory-mapped."""
        vocabulary = {term: column for column, term in enumerate(read_json(folder / "vocabulary.json"))}
        return cls(vocabulary, Postings.load(folder))

    def save(self, folder: Path) -> None:
        """Write the index to a folder. Raises :class:`quit.errors.WorkspaceError` where the disk refuses."""
        self._postings.save(folder)
        write_json(folder / "vocabulary.json", list(self._vocabulary))

    def scores(self, query: str) -> np.ndarray:
        """Return the score of every text, float32. A term that stands twice in the query counts twice, as in Lucene."""
        columns = [self._vocabulary[term] for term in terms(query) if term in self._vocabulary]
        return self._postings.scores(np.array(columns, dtype=np.int64), np.ones(len(columns)))

    def search(self, query: str, depth: int) -> tuple[np.ndarray, np.ndarray]:
        """Return rows (int64) and scores (float32) of the best texts, best first, at most ``depth``."""
        scores = self.scores(query)
        rows = best(scores, depth)
        rows = rows[scores[rows] > 0]
        return rows, scores[rows]


def term_counts(texts: Iterable[str]) -> tuple[dict[str, int], sparse.csr_array]:
    """Return the vocabulary and how often each term occurs in each text, float32, shape (texts, terms)."""
    from scipy import sparse

    vocabulary: dict[str, int] = {}
    columns, ends = array("i"), array("q", [0])
    for text in texts:
        columns.extend([vocabulary.setdefault(term, len(vocabulary)) for term in terms(text)])
        ends.append(len(columns))
    occurrences = np.ones(len(columns), dtype=np.float32), np.asarray(columns), np.asarray(ends)
    counts = sparse.csr_array(occurrences, shape=(len(ends) - 1, len(vocabulary)))
    counts.sum_duplicates()
    return vocabulary, counts


def terms(text: str) -> list[str]:
    """Return the terms of a text: Snowball stems of its words in order, without stop words."""
    return [stem(word) for word in map(str.casefold, words(text)) if word not in STOP_WORDS]

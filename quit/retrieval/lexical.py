"""BM25 (Lucene's form, by bm25s) over stemmed words: in memory, or saved and memory-mapped."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace

import bm25s
import numpy as np

from quit.text.normalize import STOP_WORDS, stem, words

K1, B = 1.2, 0.75
"""Lucene's defaults."""
FUSION = 60
"""Added to every rank in reciprocal rank fusion, as in the paper."""


class Bm25:
    """BM25 over texts, scored as in Lucene; a text without a term of the query is never found; ties by row."""

    def __init__(self, index: bm25s.BM25 | None, vocabulary: dict[str, int]) -> None:
        self._index = index
        self._vocabulary = vocabulary

    @classmethod
    def of(cls, texts: Iterable[str], *, k1: float = K1, b: float = B) -> Bm25:
        """Index texts, one at a time: memory holds 4 bytes per term of the collection, then bm25s's own arrays."""
        vocabulary: dict[str, int] = {"": 0}
        ids = _Ids()
        for text in texts:
            ids.append([vocabulary.setdefault(term, len(vocabulary)) for term in terms(text)])
        if len(vocabulary) == 1:
            return cls(None, vocabulary)
        index = bm25s.BM25(k1=k1, b=b, method="lucene", backend="numpy")
        index.index(SimpleNamespace(ids=ids, vocab=vocabulary), show_progress=False)
        return cls(index, vocabulary)

    @classmethod
    def load(cls, folder: Path) -> Bm25:
        """Return a saved index, its postings memory-mapped."""
        if not (folder / "params.index.json").is_file():
            return cls(None, {"": 0})
        index = bm25s.BM25.load(folder, mmap=True, show_progress=False)
        return cls(index, index.vocab_dict)

    def save(self, folder: Path) -> None:
        """Write the index to a folder. Raises what writing to disk raises."""
        folder.mkdir(parents=True, exist_ok=True)
        if self._index:
            self._index.save(folder, show_progress=False)

    def scores(self, query: str) -> np.ndarray | None:
        """Return the score of every text, float32, or None for a query without a known term."""
        term_ids = [self._vocabulary[term] for term in terms(query) if term in self._vocabulary]
        return self._index.get_scores_from_ids(term_ids) if term_ids and self._index else None

    def search(self, query: str, depth: int) -> tuple[np.ndarray, np.ndarray]:
        """Return rows (int64) and scores (float32) of the best texts, best first, at most ``depth``."""
        scores = self.scores(query)
        if scores is None:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float32)
        rows = best(scores, depth)
        rows = rows[scores[rows] > 0]
        return rows, scores[rows]


class _Ids:
    """Lists of term ids, kept as one flat array: a list of lists of Python objects would take eight times as much."""

    def __init__(self) -> None:
        self._flat, self._ends = array("i"), array("q", [0])

    def append(self, ids: list[int]) -> None:
        self._flat.extend(ids)
        self._ends.append(len(self._flat))

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, row: int) -> list[int]:
        return self._flat[self._ends[row] : self._ends[row + 1]].tolist()

    def __iter__(self) -> Iterator[list[int]]:
        return map(self.__getitem__, range(len(self)))


def terms(text: str) -> list[str]:
    """Return the terms of a text: Snowball stems of its words in order, without stop words."""
    return [stem(word) for word in map(str.casefold, words(text)) if word not in STOP_WORDS]


def best(scores: np.ndarray, count: int) -> np.ndarray:
    """Return the places of the ``count`` highest scores, int64, best first, ties by place."""
    return best_with_ties(scores, count)[:count]


def best_with_ties(scores: np.ndarray, count: int) -> np.ndarray:
    """Return the places of the ``count`` highest scores and of ties with the last, int64, best first, ties by place."""
    if len(scores) > count:
        least = np.partition(scores, len(scores) - count)[len(scores) - count]
        places = np.flatnonzero(scores >= least)
    else:
        places = np.arange(len(scores))
    return places[np.argsort(-scores[places], kind="stable")]


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

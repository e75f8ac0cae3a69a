"""Hybrid first stage: BM25 and a dense encoder, their rankings fused by reciprocal rank (Cormack et al. 2009)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Protocol

import bm25s
import numpy as np

from quit.evaluate.normalize import STOP_WORDS, stem, words
from quit.files import replacing
from quit.models.protocols import Encoder

CHUNK = 8192
"""Documents encoded, stored and searched at a time: bounds memory."""
BLOCK = 64
"""Questions a matrix product takes, padded: a product of one fixed shape treats each question alike."""


class Texts(Protocol):
    """What can be searched: a list of texts, or a :class:`quit.corpora.corpus.Corpus`."""

    def __len__(self) -> int: ...

    def __getitem__(self, row: int) -> str: ...

    def __iter__(self) -> Iterator[str]: ...


class HybridIndex:
    """First stage over texts.

    ``k1``, ``b``: BM25 (Lucene's form). ``depth``: documents that each ranking gives to the fusion. ``constant``: added to every
    rank (60 in the paper). ``cache``: a folder in which encodings are kept by content, one file a chunk (None: memory).
    """

    def __init__(
        self,
        texts: Texts,
        encoder: Encoder,
        *,
        k1: float,
        b: float,
        depth: int,
        constant: int,
        cache: Path | None = None,
    ) -> None:
        self.texts = texts
        self._encoder = encoder
        self._depth = depth
        self._constant = constant
        self._vocabulary: dict[str, int] = {"": 0}
        ids = [[self._vocabulary.setdefault(term, len(self._vocabulary)) for term in terms(text)] for text in texts]
        self._bm25 = bm25s.BM25(k1=k1, b=b, method="lucene", backend="numpy")
        if len(self._vocabulary) > 1:
            self._bm25.index((ids, self._vocabulary), show_progress=False)
        self._chunks = [self._encoded(part, cache) for part in _chunks(texts, CHUNK)]

    def __len__(self) -> int:
        return len(self.texts)

    def search(self, questions: Sequence[str], count: int) -> list[np.ndarray]:
        """Return for each question the rows of its ``count`` best texts, best first; ties go to the earlier text."""
        if not len(self):
            return [np.zeros(0, dtype=np.int64) for _ in questions]
        dense = self.dense(questions)
        return [
            self._fused((self.lexical(question), near), count) for question, near in zip(questions, dense, strict=True)
        ]

    def lexical(self, question: str) -> np.ndarray:
        """Return the rows with the highest BM25 scores, best first; a text that shares no term is not among them."""
        asked = [self._vocabulary[term] for term in terms(question) if term in self._vocabulary]
        if not asked:
            return np.zeros(0, dtype=np.int64)
        scores = self._bm25.get_scores_from_ids(asked)
        found = _best(scores, self._depth)
        return found[scores[found] > 0]

    def dense(self, questions: Sequence[str]) -> list[np.ndarray]:
        """Return for each question the rows of the nearest texts, best first."""
        asked = self._encoder.encode(questions)
        rows: list[np.ndarray] = []
        for first in range(0, len(asked), BLOCK):
            block = np.zeros((BLOCK, asked.shape[1]), dtype=np.float32)
            real = len(asked[first : first + BLOCK])
            block[:real] = asked[first : first + BLOCK]
            best = [(np.zeros(0, np.float32), np.zeros(0, np.int64))] * real
            start = 0
            for chunk in self._chunks:
                scores = block @ np.asarray(chunk).T
                for place in range(real):
                    found = _best(scores[place], self._depth)
                    joined = np.concatenate([best[place][0], scores[place][found]])
                    owners = np.concatenate([best[place][1], found + start])
                    kept = _best(joined, self._depth)
                    best[place] = joined[kept], owners[kept]
                start += len(chunk)
            rows += [found for _, found in best]
        return rows

    def vectors(self, rows: np.ndarray) -> np.ndarray:
        """Return the unit vectors of some texts, shape (len(rows), dimension), float32."""
        made = np.zeros((len(rows), self._encoder.dimension), dtype=np.float32)
        for place, row in enumerate(rows):
            made[place] = self._chunks[row // CHUNK][row % CHUNK]
        return made

    def _fused(self, rankings: Iterable[np.ndarray], count: int) -> np.ndarray:
        score: dict[int, float] = {}
        for ranking in rankings:
            for rank, row in enumerate(ranking.tolist(), start=1):
                score[row] = score.get(row, 0.0) + 1.0 / (self._constant + rank)
        return np.array(sorted(score, key=lambda row: (-score[row], row))[:count], dtype=np.int64)

    def _encoded(self, part: list[str], cache: Path | None) -> np.ndarray:
        if cache is None:
            return self._encoder.encode(part)
        digest = hashlib.sha256(self._encoder.identity.encode())
        for text in part:
            digest.update(hashlib.sha256(text.encode()).digest())
        target = cache / f"{digest.hexdigest()[:32]}.npy"
        if not target.is_file():
            with replacing(target) as temporary, temporary.open("wb") as file:
                np.save(file, self._encoder.encode(part))
        return np.load(target, mmap_mode="r")


def terms(text: str) -> list[str]:
    """Return the terms of a text: Snowball stems of its words in order, without stop words."""
    return [stem(word) for word in map(str.casefold, words(text)) if word not in STOP_WORDS]


def _best(scores: np.ndarray, count: int) -> np.ndarray:
    """Return the places of the highest scores, best first, ties by place."""
    if len(scores) > count:
        least = np.partition(scores, len(scores) - count)[len(scores) - count]
        places = np.flatnonzero(scores >= least)
    else:
        places = np.arange(len(scores))
    return places[np.argsort(-scores[places], kind="stable")][:count]


def _chunks(texts: Iterable[str], size: int) -> Iterator[list[str]]:
    source = iter(texts)
    while part := list(islice(source, size)):
        yield part

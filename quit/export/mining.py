"""Finds the questions whose hints look most like a question's, for hard negatives.

One document stands for a question: the passage of all its hints. So mining a split of 5,000 questions means 5,000
documents, not 1.6 million.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import bm25s
import numpy as np

from quit.corpora.lexical import terms
from quit.errors import SettingsError
from quit.models.protocols import Encoder

K1, B = 1.2, 0.75
"""BM25 in Lucene's form, with Lucene's defaults."""
BLOCK = 64
"""Questions a matrix product takes, padded: a product of one fixed shape treats each question alike."""


def identity(miner: str, encoder: Encoder | None) -> str:
    """Return what made the rankings, for a manifest."""
    return f"bm25 lucene k1={K1} b={B}" if encoder is None or miner == "bm25" else encoder.identity


def nearest_questions(
    miner: str, questions: Sequence[str], documents: Sequence[str], encoder: Encoder | None = None
) -> Iterator[np.ndarray]:
    """Yield for each question the rows of ``documents``, nearest first, ties to the earlier: int64.

    ``miner``: ``bm25`` (documents that share no term are left out) or ``encoder`` (cosine). Raises ``SettingsError``
    when the encoder is asked for and not given.
    """
    if not len(questions):
        return
    if miner == "bm25":
        yield from _by_terms(questions, documents)
    elif encoder is None:
        raise SettingsError("Mining with the encoder needs an encoder: use --miner bm25.")
    else:
        yield from _by_vectors(questions, documents, encoder)


def _by_terms(questions: Sequence[str], documents: Sequence[str]) -> Iterator[np.ndarray]:
    vocabulary: dict[str, int] = {"": 0}
    ids = [[vocabulary.setdefault(term, len(vocabulary)) for term in terms(text)] for text in documents]
    index = bm25s.BM25(k1=K1, b=B, method="lucene", backend="numpy")
    if len(vocabulary) > 1:
        index.index((ids, vocabulary), show_progress=False)
    for question in questions:
        asked = [vocabulary[term] for term in terms(question) if term in vocabulary]
        if not asked:
            yield np.zeros(0, dtype=np.int64)
            continue
        scores = index.get_scores_from_ids(asked)
        order = np.argsort(-scores, kind="stable")
        yield order[scores[order] > 0]


def _by_vectors(questions: Sequence[str], documents: Sequence[str], encoder: Encoder) -> Iterator[np.ndarray]:
    asked, found = encoder.encode(questions), encoder.encode(documents)
    for start in range(0, len(asked), BLOCK):
        part = asked[start : start + BLOCK]
        block = np.zeros((BLOCK, asked.shape[1]), dtype=np.float32)
        block[: len(part)] = part
        for scores in (block @ found.T)[: len(part)]:
            yield np.argsort(-scores, kind="stable")

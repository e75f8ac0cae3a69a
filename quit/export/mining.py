"""Finds the questions whose hints look most like a question's, for hard negatives.

One document stands for a question: the passage of all its hints. So mining a split of 5,000 questions means 5,000
documents, not 1.6 million.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from quit.errors import SettingsError
from quit.models.protocols import Encoder
from quit.retrieval.lexical import K1, B, Bm25
from quit.retrieval.search import nearest


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
        index = Bm25.of(documents)
        yield from (index.search(question, len(documents))[0] for question in questions)
    elif encoder is None:
        raise SettingsError("Mining with the encoder needs an encoder: use the miner bm25.")
    else:
        asked, vectors = encoder.encode(questions), encoder.encode(documents)
        yield from (rows for rows, _ in nearest(asked, lambda: [vectors], len(documents)))

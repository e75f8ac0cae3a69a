"""Encodings of questions and hints, kept for a while: 325 passages of a question, and six readers, share them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from threading import Lock

import numpy as np

from quit.models.protocols import Encoder

VECTORS_KEPT = 20_000
"""Text vectors kept: 30 MB at 384 float32 numbers each."""

TOKENS_KEPT = 2_000
"""Texts whose token vectors are kept: about 40 MB at 25 tokens of 384 float16 numbers each."""


class Encodings:
    """An encoder with a bounded memory. An encoder's result for a text never depends on its batch, so neither does
    ours.
    """

    def __init__(self, encoder: Encoder) -> None:
        self._vectors: OrderedDict[str, np.ndarray] = OrderedDict()
        self._tokens: OrderedDict[str, np.ndarray] = OrderedDict()
        self._encoder = encoder
        self._lock = Lock()

    def vectors(self, texts: Sequence[str]) -> dict[str, np.ndarray]:
        """Return the unit vector of each distinct text, shape (dimension,), float32."""
        with self._lock:
            return _recall(self._vectors, texts, self._encoder.encode, VECTORS_KEPT)

    def stacked(self, texts: Sequence[str]) -> np.ndarray:
        """Return the unit vectors of ``texts`` in order, shape (len(texts), dimension), float32."""
        found = self.vectors(texts)
        empty = np.zeros((0, self._encoder.dimension), dtype=np.float32)
        return np.stack([found[text] for text in texts]) if texts else empty

    def tokens(self, texts: Sequence[str]) -> dict[str, np.ndarray]:
        """Return the unit token vectors of each distinct text, shape (tokens, dimension), float16 to halve the
        memory.
        """
        with self._lock:
            return _recall(self._tokens, texts, self._encode_tokens, TOKENS_KEPT)

    def _encode_tokens(self, texts: Sequence[str]) -> list[np.ndarray]:
        return [tokens.astype(np.float16) for tokens in self._encoder.encode_tokens(texts)]


def _recall(
    memory: OrderedDict[str, np.ndarray],
    texts: Sequence[str],
    encode: Callable[[Sequence[str]], Sequence[np.ndarray]],
    kept: int,
) -> dict[str, np.ndarray]:
    distinct = list(dict.fromkeys(texts))
    missing = [text for text in distinct if text not in memory]
    found = {text: memory[text] for text in distinct if text in memory}
    if missing:
        for text, encoded in zip(missing, encode(missing), strict=True):
            memory[text] = found[text] = np.array(encoded)  # a copy: a row must not keep its whole batch alive
    for text in distinct:
        memory.move_to_end(text)
    while len(memory) > kept:
        memory.popitem(last=False)
    return found

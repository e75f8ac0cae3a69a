"""An encoder that remembers: a hint is encoded once for convergence, difficulty and all six readers."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from threading import Lock

import numpy as np

from quit.models.protocols import Encoder


class CachingEncoder:
    """Wraps an encoder with two bounded memories (least recently used texts go first). Results are the wrapped encoder's.

    ``texts``: sentence vectors kept (1.5 kB each at 384 dimensions). ``token_texts``: texts whose token vectors are kept
    (about 40 kB each).
    """

    def __init__(self, encoder: Encoder, texts: int = 200_000, token_texts: int = 4_000) -> None:
        self._encoder = encoder
        self.identity = encoder.identity
        self.dimension = encoder.dimension
        self._sentences = _Memory(texts)
        self._tokens = _Memory(token_texts)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Return unit vectors, shape (len(texts), dimension), float32."""
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        return np.stack(self._sentences.get(texts, self._encoder.encode))

    def encode_tokens(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Return the unit vectors of each text's tokens, shapes (tokens, dimension), float32."""
        return self._tokens.get(texts, self._encoder.encode_tokens)


class _Memory:
    def __init__(self, size: int) -> None:
        self._size = size
        self._known: OrderedDict[str, np.ndarray] = OrderedDict()
        self._lock = Lock()

    def get(self, texts: Sequence[str], make: Callable[[list[str]], Sequence[np.ndarray]]) -> list[np.ndarray]:
        found: dict[str, np.ndarray] = {}
        with self._lock:
            for text in texts:
                if text in self._known:
                    self._known.move_to_end(text)
                    found[text] = self._known[text]
        missing = [text for text in dict.fromkeys(texts) if text not in found]
        if missing:
            for text, vector in zip(missing, make(missing), strict=True):
                found[text] = np.array(vector)  # a row of its own, so that the batch can be freed
                found[text].flags.writeable = False
            with self._lock:
                self._known.update((text, found[text]) for text in missing)
                while len(self._known) > self._size:
                    self._known.popitem(last=False)
        return [found[text] for text in texts]

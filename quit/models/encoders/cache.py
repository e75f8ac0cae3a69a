"""An encoder that remembers: a hint is encoded once for all stages and readers, and for the next workspace."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from threading import Lock

import numpy as np

from quit.common.cache import ContentStore, content_key
from quit.models.protocols import BothEncoder, Encoder

PART = 4096
"""Texts encoded, then kept, at a time: what a killed run loses at most."""


class CachingEncoder:
    """Wraps an encoder with bounded memories (least recently used texts go first) and a store on disk.

    Results are the wrapped encoder's, to the bit. ``texts``: sentence vectors in memory (1.5 kB each at 384
    dimensions). ``token_texts``: texts whose token vectors are in memory (about 20 kB each). ``store``: where both
    are kept on disk by content and encoder (None: nowhere).
    """

    def __init__(
        self, encoder: Encoder, texts: int = 200_000, token_texts: int = 4_000, store: ContentStore | None = None
    ) -> None:
        self.identity = encoder.identity
        self.dimension = encoder.dimension
        self._sentences = _Memory(f"{encoder.identity} sentence", encoder.encode, "<f4", texts, store)
        self._tokens = _Memory(f"{encoder.identity} tokens", self._make_tokens, "<f2", token_texts, store)
        self._encoder = encoder

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Return unit vectors, shape (len(texts), dimension), float32."""
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        return np.stack(self._sentences.get(texts))

    def encode_tokens(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Return the unit vectors of each text's tokens, shapes (tokens, dimension), float32 of half precision."""
        shape = (-1, self.dimension)
        return [vectors.reshape(shape).astype(np.float32) for vectors in self._tokens.get(texts)]

    def _make_tokens(self, texts: list[str]) -> Sequence[np.ndarray]:
        """Return token vectors; sentence vectors that come with them are kept, so that no text is computed twice."""
        if not isinstance(self._encoder, BothEncoder):
            return self._encoder.encode_tokens(texts)
        sentences, tokens = self._encoder.encode_both(texts)
        self._sentences.keep(texts, sentences)
        return tokens


class _Memory:
    """``size`` texts' vectors in memory, all of them in the store, the missing ones from ``make``."""

    def __init__(
        self,
        kind: str,
        make: Callable[[list[str]], Sequence[np.ndarray] | np.ndarray],
        dtype: str,
        size: int,
        store: ContentStore | None,
    ) -> None:
        self._kind, self._make, self._dtype, self._size, self._store = kind, make, dtype, size, store
        self._vectors: OrderedDict[str, np.ndarray] = OrderedDict()
        self._lock = Lock()

    def get(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Return each text's numbers, flat."""
        vectors: dict[str, np.ndarray] = {}
        with self._lock:
            for text in texts:
                if text in self._vectors:
                    self._vectors.move_to_end(text)
                    vectors[text] = self._vectors[text]
        misses = [text for text in dict.fromkeys(texts) if text not in vectors]
        for start in range(0, len(misses), PART):
            vectors |= self._learn(misses[start : start + PART])
        return [vectors[text] for text in texts]

    def _learn(self, texts: list[str]) -> dict[str, np.ndarray]:
        keys = {text: content_key(self._kind, text) for text in texts}
        values = self._store.read(list(keys.values())) if self._store else {}
        misses = [text for text in texts if keys[text] not in values]
        vectors = {text: np.frombuffer(values[key], dtype=self._dtype) for text, key in keys.items() if key in values}
        self._remember(vectors)
        return vectors | (self.keep(misses, self._make(misses)) if misses else {})

    def keep(self, texts: Sequence[str], vectors: Sequence[np.ndarray] | np.ndarray) -> dict[str, np.ndarray]:
        """Remember vectors, in memory and in the store; returns each text's numbers, flat."""
        flat = {text: vector.astype(self._dtype).ravel() for text, vector in zip(texts, vectors, strict=True)}
        if self._store:
            self._store.write({content_key(self._kind, text): numbers.tobytes() for text, numbers in flat.items()})
        self._remember(flat)
        return flat

    def _remember(self, vectors: dict[str, np.ndarray]) -> None:
        with self._lock:
            self._vectors.update(vectors)
            while len(self._vectors) > self._size:
                self._vectors.popitem(last=False)

"""Equivalence probabilities kept on disk by content: a pair that was paid for once is never paid for again.

It serves the embedded model too: a filter that runs again after an override finds its pairs at once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from quit.common.cache import ContentStore, content_key
from quit.models.protocols import Equivalence, Pair

CHUNK = 4096
"""Pairs asked at a time: what a killed run loses at most."""


class CachedEquivalence:
    """Wraps an equivalence model; values are the wrapped model's, to the bit.

    A key is the hash of the model's identity, question, reference and candidate.
    """

    def __init__(self, equivalence: Equivalence, store: ContentStore) -> None:
        self._equivalence = equivalence
        self._store = store
        self.identity, self.note = equivalence.identity, equivalence.note

    def probability(self, pairs: Sequence[Pair]) -> np.ndarray:
        """Return the probability that each pair is equivalent, shape (len(pairs),), float64 in [0, 1]."""
        keys = {pair: content_key(self.identity, pair.question, pair.reference, pair.candidate) for pair in pairs}
        values = self._store.read(list(keys.values()))
        misses = [pair for pair, key in keys.items() if key not in values]
        for start in range(0, len(misses), CHUNK):
            part = misses[start : start + CHUNK]
            probabilities = self._equivalence.probability(part).astype("<f8")
            new_values = {keys[pair]: value.tobytes() for pair, value in zip(part, probabilities, strict=True)}
            self._store.write(new_values)
            values |= new_values
        return np.frombuffer(b"".join(values[keys[pair]] for pair in pairs), dtype="<f8").astype(np.float64)

"""Equivalence probabilities kept on disk by content: a pair that was paid for once is never paid for again.

One SQLite file with a write-ahead log, appended to only; several threads and processes may use it at once. Deleting it costs time,
nothing else. It serves the embedded model too: keeping costs it nothing that can be measured (9.5 s either way for 1,500 pairs), and a
filter that runs again after an override finds its pairs at once (0.04 s).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from quit.cache import ContentStore, content_key
from quit.models.protocols import Equivalence, Pair

CHUNK = 4096
"""Pairs asked at a time: what a killed run loses at most."""


class CachedEquivalence:
    """Wraps an equivalence model; values are the wrapped model's, to the bit.

    A key is the hash of the model's identity, question, reference and candidate. Where the file cannot be used (read-only folder,
    full disk, damage) the model is asked as if there were none, and a warning says so once.
    """

    def __init__(self, equivalence: Equivalence, path: Path) -> None:
        self._equivalence = equivalence
        self._store = ContentStore(path, "probability", "Equivalence probabilities")
        self.identity = equivalence.identity

    def probability(self, pairs: Sequence[Pair]) -> np.ndarray:
        """Return the probability that each pair is equivalent, shape (len(pairs),), float64 in [0, 1]."""
        keys = {pair: self._key(pair) for pair in pairs}
        known = self._store.read(list(keys.values()))
        fresh = [pair for pair, key in keys.items() if key not in known]
        for start in range(0, len(fresh), CHUNK):
            part = fresh[start : start + CHUNK]
            made = dict(zip((keys[pair] for pair in part), self._equivalence.probability(part).tolist(), strict=True))
            self._store.write(made)
            known.update(made)
        return np.array([known[keys[pair]] for pair in pairs], dtype=np.float64)

    def _key(self, pair: Pair) -> bytes:
        return content_key(self.identity, pair.question, pair.reference, pair.candidate)

"""Answer equivalence that ships with the project: no download, small, fast on a CPU.

``training/equivalence.py`` makes the weights; ``quit/models/weights/EQUIVALENCE.md`` is their model card.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from quit.models.equivalence.features import clean, lexical
from quit.models.protocols import Encoder, Pair

WEIGHTS = Path(__file__).parents[1] / "weights" / "equivalence.npz"


class EmbeddedEquivalence:
    """Probability that two answers are equivalent, from the shipped weights."""

    def __init__(self, encoder: Encoder, weights: Path = WEIGHTS) -> None:
        self._encoder = encoder
        self._weights = weights
        self._arrays: dict[str, np.ndarray] | None = None
        self.identity = f"embedded-equivalence@{zlib.crc32(weights.read_bytes()):08x}+{encoder.identity}"

    def probability(self, pairs: Sequence[Pair]) -> np.ndarray:
        """Return the probability that each pair is equivalent, shape (len(pairs),), float64 in [0, 1].

        The value of a pair does not depend on which other pairs are asked about.
        """
        if not pairs:
            return np.zeros(0, dtype=np.float64)
        if self._arrays is None:
            with np.load(self._weights, allow_pickle=False) as file:
                self._arrays = {key: file[key] for key in file.files}
        x = np.array([lexical(pair.question, pair.reference, clean(pair.candidate)) for pair in pairs])
        x = (x[:, : len(self._arrays["mean"])] - self._arrays["mean"]) / self._arrays["scale"]
        logits = (x * self._arrays["coefficients"]).sum(axis=1) + self._arrays["bias"]
        return 1.0 / (1.0 + np.exp(-logits))

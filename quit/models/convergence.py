"""The embedded convergence model: kernel ridge regression on what a hint says and how near it is to the candidates.

A prediction is a mean plus a weighted sum of likenesses to the hints it was trained on. Three likenesses are added:
of the features, of the hint's vector, and of that vector times the gold answer's. ``training/convergence.py`` makes
the weights, ``quit/models/weights/CONVERGENCE.md`` is their card.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from quit.common.arithmetic import exp
from quit.common.checksums import file_checksum
from quit.models.convergence_features import features, meanings, texts_of
from quit.models.encoders.cache import CachingEncoder
from quit.models.loading import once
from quit.models.protocols import Encoder, HintSet

VERSION = 1
"""Rises whenever the same weights would give other values."""

WEIGHTS = Path(__file__).parent / "weights" / "convergence.safetensors"
CLIP = 4.0
"""Standard deviations at which a feature is cut off: odd texts must not leave the region that training saw."""


def standardised(x: np.ndarray, mean: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Return features as clipped numbers of standard deviations, same shape."""
    return np.clip((x - mean) / scale, -CLIP, CLIP)


class KernelRidge:
    """The model's arithmetic: float64, row by row in a fixed order, so that a value never depends on its batch.

    ``arrays``: features, hints (rows, dimension), golds (questions, dimension), gold (rows: which of ``golds``),
    weights (rows), mean and scale (features), widths (3: of each likeness), base (the mean convergence).
    """

    def __init__(self, arrays: Mapping[str, np.ndarray]) -> None:
        hints = arrays["hints"].astype(np.float64)
        golds = arrays["golds"].astype(np.float64)[arrays["gold"]]
        self._parts = [arrays["features"].astype(np.float64), hints, hints * golds]
        self._squares = [(part * part).sum(axis=1) for part in self._parts]
        self._widths = arrays["widths"].astype(np.float64)
        self._weights = arrays["weights"].astype(np.float64)
        self._mean, self._scale = arrays["mean"].astype(np.float64), arrays["scale"].astype(np.float64)
        self._base = arrays["base"].item()

    def predict(self, x: np.ndarray, hints: np.ndarray, products: np.ndarray) -> np.ndarray:
        """Return one value per row, shape (rows,); not clipped."""
        values = np.zeros(len(x))
        ready = standardised(x, self._mean, self._scale)
        for row, views in enumerate(zip(ready, hints, products, strict=True)):
            value = self._base
            for part, squares, width, view in zip(self._parts, self._squares, self._widths, views, strict=True):
                distance = squares + (view * view).sum() - 2.0 * np.einsum("ij,j->i", part, view)
                value += (self._weights * exp(-width * np.maximum(distance, 0.0))).sum()
            values[row] = value
        return values


class EmbeddedConvergence:
    """Convergence from the shipped weights, loaded when first needed (thread-safe)."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self.identity = f"learned/{VERSION}@{file_checksum(WEIGHTS)[:12]}+{encoder.identity}"

    def values(self, items: Sequence[HintSet]) -> list[list[float]]:
        """Return the expected convergence of each hint of each question, 0 to 1."""
        encoder = CachingEncoder(self._encoder)
        encoder.encode_tokens([hint for item in items for hint in item.hints])  # difficulty and a reader need them too
        encoder.encode([text for item in items for text in texts_of(item)])
        return [self._values(item, encoder) if item.hints else [] for item in items]

    @once
    def _model(self) -> KernelRidge:
        from safetensors.numpy import load_file

        return KernelRidge(load_file(WEIGHTS))

    def _values(self, item: HintSet, encoder: Encoder) -> list[float]:
        hints, gold = meanings(item, encoder)
        values = self._model.predict(features(item, encoder), hints, hints * gold)
        return [round(float(value), 6) for value in np.clip(values, 0.0, 1.0)]

"""Postings: for each term the texts that have it, with their weights. In memory, or on disk."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from quit.common.files import read_json, replacing, write_json, writing


class Postings:
    """``bounds``: integers, terms + 1. ``rows``: int32, texts ascending in each term. ``weights``: float32."""

    def __init__(self, bounds: np.ndarray, rows: np.ndarray, weights: np.ndarray, texts: int) -> None:
        self._bounds, self._rows, self._weights, self._texts = bounds, rows, weights, texts

    @classmethod
    def of(cls, weights: np.ndarray, terms: np.ndarray, bounds: np.ndarray, shape: tuple[int, int]) -> Postings:
        """Turn texts into postings: ``bounds`` has where each text's terms and weights end; ``shape``: texts, terms."""
        from scipy import sparse

        columns = sparse.csr_array((weights, terms, bounds), shape=shape).tocsc()
        return cls(columns.indptr, columns.indices.astype(np.int32, copy=False), columns.data, shape[0])

    @classmethod
    def load(cls, folder: Path) -> Postings:
        """Open the postings of a folder, memory-mapped."""
        bounds, rows, weights = (
            np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("bounds", "rows", "weights")
        )
        return cls(bounds, rows, weights, read_json(folder / "postings.json")["texts"])

    def save(self, folder: Path) -> None:
        """Write the postings to a folder. Raises :class:`quit.errors.WorkspaceError` where the disk refuses."""
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
            for name, values in (("bounds", self._bounds), ("rows", self._rows), ("weights", self._weights)):
                with replacing(folder / f"{name}.npy") as temporary, temporary.open("wb") as file:
                    np.save(file, values)
        write_json(folder / "postings.json", {"texts": self._texts})

    def scores(self, terms: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the dot product of a query with every text, float32; a term may occur more than once."""
        scores = np.zeros(self._texts, dtype=np.float32)
        for term, weight in zip(terms.tolist(), weights.tolist(), strict=True):
            low, high = self._bounds[term], self._bounds[term + 1]
            scores[self._rows[low:high]] += np.float32(weight) * self._weights[low:high]
        return scores

"""Postings of a sparse encoder: for each vocabulary entry the documents that have it, with their weights, on disk."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
from scipy import sparse

from quit.common.files import read_json, write_json
from quit.retrieval import vectors
from quit.retrieval.built import BuiltCorpus
from quit.retrieval.encoders import SparseEncoder
from quit.retrieval.vectors import PARTIAL, check_finite, checkpointed_batches, id_of, write_array


class Postings:
    """``bounds``: int64, entries + 1. ``rows``: int32, documents ascending in each entry. ``weights``: float32."""

    def __init__(self, bounds: np.ndarray, rows: np.ndarray, weights: np.ndarray, documents: int) -> None:
        self._bounds, self._rows, self._weights, self._documents = bounds, rows, weights, documents

    @classmethod
    def load(cls, folder: Path) -> Postings:
        """Open the postings of a folder, memory-mapped."""
        bounds, rows, weights = (
            np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("bounds", "rows", "weights")
        )
        return cls(bounds, rows, weights, read_json(folder / "postings.json")["documents"])

    def scores(self, entries: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the dot product of a query with every document, float32."""
        scores = np.zeros(self._documents, dtype=np.float32)
        for entry, weight in zip(entries.tolist(), weights.tolist(), strict=True):
            low, high = self._bounds[entry], self._bounds[entry + 1]
            scores[self._rows[low:high]] += np.float32(weight) * self._weights[low:high]
        return scores


def build_postings(corpus: BuiltCorpus, encoder: SparseEncoder, folder: Path) -> None:
    """Encode a corpus in steps, each on disk before the next, then turn documents into postings.

    Raises :class:`quit.errors.InputError` that names the document for NaN or infinity.
    """

    def make(start: int, stop: int) -> list[np.ndarray]:
        rows = encoder.documents(corpus.text_range(start, stop))
        for row, (_, weights) in enumerate(rows, start=start):
            check_finite(weights[None, :], encoder.name, id_of(corpus, row))
        lengths = np.array([len(entries) for entries, _ in rows], dtype=np.int32)
        return [*(np.concatenate(column) for column in zip(*rows, strict=True)), lengths]

    plan = {"corpus": corpus.identity, "identity": encoder.identity}
    names = ("entries", "weights", "lengths")
    steps = checkpointed_batches(folder / PARTIAL, plan, names, len(corpus), vectors.BLOCK, make, "sparse vectors")
    entries, weights, lengths = (np.concatenate(arrays) for arrays in zip(*steps, strict=True))
    bounds = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    postings = sparse.csr_array((weights, entries, bounds), shape=(len(corpus), encoder.dimension)).tocsc()
    write_array(folder / "bounds.npy", postings.indptr.astype(np.int64))
    write_array(folder / "rows.npy", postings.indices.astype(np.int32))
    write_array(folder / "weights.npy", postings.data)
    write_json(folder / "postings.json", {"documents": len(corpus)})
    shutil.rmtree(folder / PARTIAL)

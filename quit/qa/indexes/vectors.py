"""Vectors of a corpus on disk: encoded step by step, resumable, and never twice for the same document.

::

    V/vectors.f32        raw little-endian float32, rows x dimension, in the corpus's order
    V/doc_ids.s20        20 bytes per document, the same order
    V/manifest.json      written last
    V/partial/           the steps of an unfinished run

A document's id follows from its content, so a vector of an earlier corpus is taken over wherever its id comes back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quit.common.estimate import Estimate
from quit.common.files import read_json, remove_leftovers, replacing, writing
from quit.common.manifests import fault, write_manifest
from quit.common.progress import note
from quit.common.steps import Steps, remove_steps
from quit.errors import InputError
from quit.qa.indexes.built import BuiltCorpus
from quit.qa.indexes.encoders import DenseEncoder

DATA, IDS, MANIFEST, PARTIAL = "vectors.f32", "doc_ids.s20", "manifest.json", "partial"
BLOCK = 2048
"""Documents encoded per step: a killed run resumes after its last whole step."""


@dataclass(frozen=True, eq=False)
class Vectors:
    """``matrix``: float32, shape (documents, dimension), memory-mapped. ``ids``: bytes, shape (documents,)."""

    encoder: str
    identity: str
    corpus: str
    matrix: np.ndarray
    ids: np.ndarray


def open_vectors(folder: Path) -> Vectors | None:
    """Return the vectors in a folder, or None where there are none, not all, or others than were written."""
    if fault(folder / MANIFEST):
        return None
    facts = read_json(folder / MANIFEST)
    matrix = np.memmap(folder / DATA, dtype="<f4", mode="r", shape=(facts["rows"], facts["dimension"]))
    ids = np.fromfile(folder / IDS, dtype="S20", count=facts["rows"])
    return Vectors(facts["encoder"], facts["identity"], facts["corpus"], matrix, ids)


def encode_corpus(corpus: BuiltCorpus, encoder: DenseEncoder, folder: Path) -> Vectors:
    """Return the vectors of a corpus in ``folder``, encoding only what is not there.

    Vectors of an earlier corpus are used where encoder and document are the same. Raises :class:`InputError` that names
    the document when the encoder returns NaN or infinity; :class:`WorkspaceError` when the disk refuses.
    """
    stored = open_vectors(folder)
    if stored is None and (folder / MANIFEST).is_file():
        note(f"{fault(folder / MANIFEST)}: every document is encoded again")
    if stored is None or (stored.corpus, stored.identity) != (corpus.identity, encoder.identity):
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
            remove_leftovers(folder, "*")
            earlier = stored if stored and stored.identity == encoder.identity else None
            _encode(corpus, encoder, folder, earlier)
        stored = open_vectors(folder)
        assert stored is not None
    remove_steps(folder / PARTIAL)
    return stored


def _encode(corpus: BuiltCorpus, encoder: DenseEncoder, folder: Path, earlier: Vectors | None) -> None:
    ids = np.array(corpus.all_ids(), dtype="S20")
    earlier_rows = np.full(len(ids), -1)
    if earlier:
        earlier_rows = pc.fill_null(pc.index_in(pa.array(ids), value_set=pa.array(earlier.ids)), -1).to_numpy()

    def make(start: int, stop: int) -> list[np.ndarray]:
        vectors = np.zeros((stop - start, encoder.dimension), dtype="<f4")
        rows = earlier_rows[start:stop]
        if earlier:
            vectors[rows >= 0] = earlier.matrix[rows[rows >= 0]]
        new = np.flatnonzero(rows < 0)
        if len(new):
            vectors[new] = encoder.documents(corpus.texts((new + start).tolist()))
            check_finite(vectors[new], encoder.name, lambda row: corpus.ids([int(new[row]) + start])[0])
        return [vectors]

    facts = {
        "corpus": corpus.identity,
        "encoder": encoder.name,
        "identity": encoder.identity,
        "dimension": encoder.dimension,
    }
    steps = checkpointed_batches(folder / PARTIAL, facts, ("vectors",), len(corpus), BLOCK, make, "vectors")
    (folder / MANIFEST).unlink(missing_ok=True)
    with replacing(folder / IDS) as temporary:
        ids.tofile(temporary)
    write_joined(folder / DATA, [vectors for [vectors] in steps])
    write_manifest(folder / MANIFEST, {**facts, "block": BLOCK, "rows": len(corpus)}, [folder / DATA, folder / IDS])


def check_finite(vectors: np.ndarray, encoder: str, name: Callable[[int], str]) -> None:
    """Raise :class:`InputError` that names the first row with NaN or infinity."""
    bad = np.flatnonzero(~np.isfinite(vectors).all(axis=tuple(range(1, vectors.ndim))))
    if bad.size:
        raise InputError(
            f"The encoder {encoder} returned NaN or infinity for {name(int(bad[0]))!r} ({len(bad)} of {len(vectors)} "
            "texts of this step). Use another encoder or first_stages.precision=fp32; what was encoded before stays."
        )


def id_of(corpus: BuiltCorpus, row: int) -> Callable[[int], str]:
    """Return what names one document in :func:`check_finite`; its id is read only when it is needed."""
    return lambda _: corpus.ids([row])[0]


def checkpointed_batches(
    folder: Path,
    plan: Mapping[str, Any],
    names: Sequence[str],
    count: int,
    block: int,
    make: Callable[[int, int], Sequence[np.ndarray]],
    what: str,
) -> list[list[np.ndarray]]:
    """Return the arrays of each step of ``block`` of ``count`` documents, memory-mapped; each step is on disk before
    the next.

    ``make(start, stop)`` returns a step's arrays, one for each of ``names``. A killed run resumes after its last whole
    step; a folder of another ``plan`` or block is started again. ``what``: begins the lines that are noted.
    """
    steps = Steps(folder, {**plan, "block": block})
    starts = range(0, count, block)
    done = min(count, block * steps.finished())
    if done:
        note(f"{what}: resuming after {done:,} documents")
    estimate = Estimate(count, done)
    for number, start in enumerate(starts):
        if start >= done:
            stop = min(start + block, count)
            arrays = make(start, stop)
            with steps.adding(number) as step:
                for name, array in zip(names, arrays, strict=True):
                    np.save(step / f"{name}.npy", array)
            note(f"{what}: documents {estimate.at(stop)}")
    return [[np.load(steps[number] / f"{name}.npy", mmap_mode="r") for name in names] for number in range(len(starts))]


def write_joined(path: Path, arrays: Sequence[np.ndarray]) -> None:
    """Write arrays one after the other, raw."""
    with replacing(path) as temporary, temporary.open("wb") as file:
        for array in arrays:
            array.tofile(file)

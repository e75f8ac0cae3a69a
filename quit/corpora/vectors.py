"""Vectors of a corpus on disk: encoded step by step, resumable, and never twice for the same document.

::

    V/vectors.f32        raw little-endian float32, rows x dimension, in the corpus's order
    V/doc_ids.s20        20 bytes a document, the same order
    V/manifest.json      written last
    V/partial/           an unfinished run: vectors.f32 grows, progress.json says how many rows are sure

A document's id follows from its content, so a vector of an earlier corpus is taken over wherever its id comes back.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from quit.common.files import remove_leftovers, replacing, take_back, write_json, writing
from quit.corpora.built import BuiltCorpus
from quit.corpora.encoders import DenseEncoder
from quit.errors import InputError
from quit.operations.estimate import Estimate

DATA, IDS, MANIFEST, PROGRESS = "vectors.f32", "doc_ids.s20", "manifest.json", "progress.json"
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Vectors:
    """``matrix``: float32, shape (documents, dimension), memory-mapped. ``ids``: bytes, shape (documents,)."""

    path: Path
    encoder: str
    identity: str
    corpus: str
    matrix: np.ndarray
    ids: np.ndarray
    encoded: int = 0


def open_vectors(folder: Path) -> Vectors | None:
    """Return the vectors in a folder, or None where there are none, or not all."""
    try:
        facts = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        return _opened(folder, facts, facts["rows"])
    except (OSError, ValueError, KeyError):
        return None


def encode_corpus(
    corpus: BuiltCorpus, encoder: DenseEncoder, folder: Path, block: int, progress: Progress | None = None
) -> Vectors:
    """Return the vectors of a corpus in ``folder``, encoding only what is not there: ``encoded`` says how many that
    were.

    Vectors of an earlier corpus, finished or not, are used where encoder and document are the same. Raises
    :class:`InputError` that names the document when the encoder returns NaN or infinity; :class:`WorkspaceError` when
    the disk refuses.
    """
    known = open_vectors(folder)
    if known and (known.corpus, known.identity) == (corpus.identity, encoder.identity):
        return known
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        remove_leftovers(folder, "*")
        return _encode(corpus, encoder, folder, block, progress or (lambda _: None), known)


def _encode(
    corpus: BuiltCorpus, encoder: DenseEncoder, folder: Path, block: int, say: Progress, known: Vectors | None
) -> Vectors:
    partial = folder / "partial"
    facts = {
        "corpus": corpus.identity,
        "encoder": encoder.name,
        "identity": encoder.identity,
        "dimension": encoder.dimension,
        "block": block,
    }
    done, earlier = _resume(partial, facts, folder)
    olds = [old for old in (known, earlier) if old and old.identity == encoder.identity]
    if done:
        say(f"vectors: going on after {done:,} documents")
    ids = np.array(corpus.all_ids(), dtype="S20")
    if not done:
        ids.tofile(partial / IDS)
    encoded, estimate = 0, Estimate(len(corpus), done)
    with (partial / DATA).open("r+b") as file:
        file.seek(done * encoder.dimension * 4)
        for start in range(done, len(corpus), block):
            stop = min(start + block, len(corpus))
            vectors, fresh = _block(corpus, encoder, ids, start, stop, olds)
            encoded += fresh
            file.write(vectors.tobytes())
            file.flush()
            os.fsync(file.fileno())
            write_json(partial / PROGRESS, {**facts, "rows": stop, "encoded": encoded})
            say(f"vectors: documents {estimate.at(stop)}")
    (folder / MANIFEST).unlink(missing_ok=True)
    for name in (IDS, DATA):
        os.replace(partial / name, folder / name)
    write_json(folder / MANIFEST, {**facts, "rows": len(corpus)})
    shutil.rmtree(partial)
    shutil.rmtree(folder / "earlier", ignore_errors=True)
    made_of = _opened(folder, facts, len(corpus))
    return Vectors(folder, made_of.encoder, made_of.identity, made_of.corpus, made_of.matrix, made_of.ids, encoded)


def _resume(partial: Path, facts: dict[str, Any], folder: Path) -> tuple[int, Vectors | None]:
    """Return how many rows of this very run are done, and what an unfinished run over another corpus left."""
    earlier = folder / "earlier"
    done = 0
    try:
        state = json.loads((partial / PROGRESS).read_text(encoding="utf-8"))
        if not (folder / MANIFEST).exists():
            take_back(partial, folder, (IDS, DATA))
        if {key: state[key] for key in facts} == facts:
            os.truncate(partial / DATA, int(state["rows"]) * facts["dimension"] * 4)
            done = int(state["rows"])
        else:
            shutil.rmtree(earlier, ignore_errors=True)
            os.replace(partial, earlier)
    except (OSError, ValueError, KeyError):
        pass
    if not done:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        (partial / DATA).touch()
    try:
        state = json.loads((earlier / PROGRESS).read_text(encoding="utf-8"))
        return done, _opened(earlier, state, int(state["rows"]))
    except (OSError, ValueError, KeyError):
        return done, None


def _opened(folder: Path, facts: dict[str, Any], rows: int) -> Vectors:
    matrix = np.memmap(folder / DATA, dtype="<f4", mode="r", shape=(rows, facts["dimension"]))
    ids = np.fromfile(folder / IDS, dtype="S20", count=rows)
    return Vectors(folder, facts["encoder"], facts["identity"], facts["corpus"], matrix, ids)


def _block(
    corpus: BuiltCorpus, encoder: DenseEncoder, ids: np.ndarray, start: int, stop: int, olds: list[Vectors]
) -> tuple[np.ndarray, int]:
    vectors = np.zeros((stop - start, encoder.dimension), dtype="<f4")
    missing = np.ones(stop - start, dtype=bool)
    for old in olds:
        order = np.argsort(old.ids, kind="stable")
        places = np.minimum(np.searchsorted(old.ids, ids[start:stop], sorter=order), len(order) - 1)
        rows = order[places]
        taken = missing & (old.ids[rows] == ids[start:stop])
        vectors[taken] = old.matrix[rows[taken]]
        missing &= ~taken
    wanted = np.flatnonzero(missing)
    if len(wanted):
        vectors[wanted] = encoder.documents(corpus.texts((wanted + start).tolist()))
        check_finite(vectors[wanted], encoder.name, lambda row: corpus.ids([int(wanted[row]) + start])[0])
    return vectors, len(wanted)


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


def in_steps(
    corpus: BuiltCorpus,
    folder: Path,
    identity: str,
    block: int,
    last: str,
    make: Callable[[int, int, Path], None],
    say: Progress,
) -> list[Path]:
    """Encode a corpus in steps of ``block`` documents, each on disk before the next; return where each step's files
    are.

    ``make(start, stop, path)`` writes a step's files, named ``path`` and an ending, ``last`` of all ``path`` +
    ``last``: a killed run resumes after its last whole step. A folder of another corpus, encoder or block is started
    again.
    """
    plan = {"corpus": corpus.identity, "identity": identity, "block": block}
    known = folder / "plan.json"
    if not known.is_file() or json.loads(known.read_text()) != plan:
        shutil.rmtree(folder, ignore_errors=True)
        write_json(known, plan)
    paths, estimate = [], Estimate(len(corpus))
    for start in range(0, len(corpus), block):
        stop = min(start + block, len(corpus))
        paths.append(folder / f"{start:010d}")
        if not paths[-1].with_suffix(last).is_file():
            make(start, stop, paths[-1])
        say(f"documents {estimate.at(stop)}")
    return paths


def write_array(path: Path, array: np.ndarray) -> None:
    """Write an array as ``.npy``. Raises :class:`quit.errors.WorkspaceError` where the disk refuses."""
    with writing(path), replacing(path) as temporary, temporary.open("wb") as file:
        np.save(file, array)


def stored_array(path: Path, make: Callable[[], np.ndarray]) -> np.ndarray:
    """Return the array of a file, memory-mapped; where there is no such file, what ``make`` returns is written
    first."""
    if not path.is_file():
        write_array(path, make())
    return np.load(path, mmap_mode="r")

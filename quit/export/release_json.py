"""The paper's release JSON, so that its own scripts run unmodified.

``train.json``, ``dev.json`` and ``test.json`` are arrays of ``{id, question, answers, hints: [{hint, convergence,
origin}], subsets: {subset: {permutation: {reader: answer}}}}`` with labelers before the other readers; ``answers``
are the valid answers, so label 2 = one of the labelers' answers (the first three, with three labelers) is among them.
``corpus.jsonl`` has one line a passage: ``{id, contents, title: question id}``. With ``paper_keys``, readers, subsets
and ids have the paper's names (:mod:`quit.dataset.paper_names`).

Each text is escaped once; a question is then one ``join`` over ready pieces. So 14.4 million answers take seconds.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from operator import itemgetter
from typing import Any

import numpy as np

from quit.common.safe import json_text
from quit.dataset.dataset import Dataset
from quit.dataset.paper_names import paper_ids, subset_mask
from quit.dataset.release import ReaderInfo
from quit.errors import SettingsError
from quit.evaluate.labels import SPLITS
from quit.export.files import ExportFolder, FormatFacts
from quit.export.formats import Options
from quit.stages.labelling.passages import PermutationTable

PAPER_LABELERS = ("gemma-3-1b", "qwen-3-4b", "llama-31-8b")
PAPER_READERS = ("llama-32-1b", "gemma-3-4b", "qwen-3-8b")


def write(dataset: Dataset, folder: ExportFolder, options: Options) -> FormatFacts:
    """Write the three splits and the corpus; return which reader stands behind which key.

    Raises ``SettingsError`` when ``paper_keys`` is asked for without exactly three labelers and three readers.
    """
    keys = reader_keys(dataset, options.paper_keys)
    names = published_names(dataset, options.paper_keys)
    for split in SPLITS:
        _write_split(dataset, split, names, list(keys), folder)
    _write_corpus(dataset, names, folder)
    return {
        **names_facts(dataset, names, options.paper_keys),
        "label_rule": f"2 if one of the first {len(dataset.labelers)} answers of a passage is in 'answers', else 1",
        "readers": [{"key": key, **asdict(info)} for key, info in keys.items()],
    }


def reader_keys(dataset: Dataset, paper_keys: bool) -> dict[str, ReaderInfo]:
    """Return key -> the reader in the order of the file, labelers first. Raises as ``write`` does."""
    readers = dataset.ordered_readers
    if not paper_keys:
        return {info.name: info for info in readers}
    labelers = len(dataset.labelers)
    if (labelers, len(readers) - labelers) != (len(PAPER_LABELERS), len(PAPER_READERS)):
        raise SettingsError(
            "Paper keys (--paper-keys, paper_keys=True) need three labelers and three readers, to write under the "
            f"paper's six names; this release has {labelers} and {len(readers) - labelers}."
        )
    return dict(zip((*PAPER_LABELERS, *PAPER_READERS), readers, strict=True))


@dataclass(frozen=True)
class PublishedNames:
    """Ids of the questions, and of each permutation the name of its subset."""

    ids: list[str]
    subsets: list[str]


def published_names(dataset: Dataset, paper_keys: bool) -> PublishedNames:
    """Return what questions and subsets are called in the files: as here (``024``), as an imported release names its
    subsets, or with ``paper_keys`` as in the paper's files. Raises ``SettingsError`` as ``paper_ids`` does, and where
    the passages are not all ordered selections."""
    permutations = dataset.check_full("The format of QUIT's own scripts (release-json, paper-index)")
    names = dataset.provenance.get("imported", {}).get("subsets", {})
    subsets = [
        names.get(subset, subset_mask(subset, permutations.n) if paper_keys else subset)
        for subset in permutations.subset.to_pylist()
    ]
    return PublishedNames(paper_ids(dataset.ids) if paper_keys else dataset.ids, subsets)


def names_facts(dataset: Dataset, names: PublishedNames, paper_keys: bool) -> FormatFacts:
    """Return for the manifest whether names are the paper's, and id in the files -> question id, where they differ."""
    pairs = zip(names.ids, dataset.ids, strict=True)
    return {"paper_keys": paper_keys, "question_ids": {name: ours for name, ours in pairs if name != ours}}


def _write_split(dataset: Dataset, split: str, names: PublishedNames, keys: list[str], folder: ExportFolder) -> None:
    positions = dataset.positions(split)
    order = nested_order(dataset.rows.table)
    pieces = _subset_pieces(dataset, order, names.subsets, keys)
    name = f"{split}.json"
    with folder.path(name).open("wb") as file:
        file.write(b"[")
        before = b"\n"
        for block in dataset.blocks(positions):
            texts = np.array([_dump(value) for value in block.values], dtype=object)
            by_question = block.codes.reshape(len(block.positions), len(order), -1)
            for position, codes in zip(block.positions, by_question, strict=True):
                pieces[1::2] = texts[codes[order].ravel()].tolist()
                file.writelines((before, _head(dataset, names.ids[position], position), b"".join(pieces), b"}"))
                before = b",\n"
        file.write(b"\n]\n" if len(positions) else b"]\n")
    folder.record(name, len(positions))


def _head(dataset: Dataset, name: str, position: int) -> bytes:
    hints = [
        {"hint": row["hint"], "convergence": row["convergence"], "origin": row["source"]}
        for row in dataset.selected_hints[position]
    ]
    record = {
        "id": name,
        "question": dataset.question_of[position],
        "answers": dataset.valid_answers_of[position],
        "hints": hints,
    }
    return _dump(record)[:-1] + b', "subsets": '


def nested_order(permutations: PermutationTable) -> np.ndarray:
    """Return the rows in the order of the nested JSON: by size, subset and permutation (as itertools gives them)."""
    subset, permutation = permutations.subset.to_pylist(), permutations.permutation.to_pylist()
    return np.array(sorted(range(len(subset)), key=lambda row: (len(subset[row]), subset[row], permutation[row])))


def _subset_pieces(dataset: Dataset, order: np.ndarray, subset: list[str], keys: list[str]) -> list[bytes]:
    """Return the text of ``subsets`` around the answers: constants at even places, room for an answer at odd ones."""
    names = [_dump(key) + b": " for key in keys]
    permutation = dataset.rows.table.permutation.to_pylist()
    pieces: list[bytes] = []
    before, last = b"{", None
    for row in order.tolist():
        if subset[row] != last:
            before += b"" if last is None else b"}, "
            before += _dump(subset[row]) + b": {"
            last = subset[row]
        else:
            before += b", "
        before += _dump(permutation[row]) + b": {"
        for name in names:
            pieces += [before + name, b""]
            before = b", "
        before = b"}"
    return [*pieces, b"}}}"]


def _write_corpus(dataset: Dataset, names_in_files: PublishedNames, folder: ExportFolder) -> None:
    permutations = dataset.rows.table.permutation.to_pylist()
    names: list[str] = []
    pieces: dict[str, bytes] = {}
    for subset, permutation in zip(names_in_files.subsets, permutations, strict=True):
        pieces[permutation] = f'_{subset}_{permutation}", "contents": "'.encode()
        names += ["start", permutation, f"hint {permutation[0]}", *(f"next {i}" for i in permutation[1:]), "end"]
    lines = itemgetter(*names)
    with folder.path("corpus.jsonl").open("wb") as file:
        for position, question_id in enumerate(names_in_files.ids):
            name = _dump(question_id)[1:-1]
            pieces |= {"start": b'{"id": "' + name, "end": b'", "title": "' + name + b'"}\n'}
            for place, row in enumerate(dataset.selected_hints[position]):
                hint = _dump(row["hint"])[1:-1]
                pieces |= {f"hint {place}": hint, f"next {place}": b" " + hint}
            file.write(b"".join(lines(pieces)))
    folder.record("corpus.jsonl", dataset.passage_count)


def _dump(value: Any) -> bytes:
    return json_text(value).encode()

"""The seven files that the paper's index scripts make of its release JSON, made straight from the tables.

``{train,dev,test}/index.jsonl`` has one line a passage, ``{id, contents, title: question id}``;
``{split}/retriever.jsonl`` one a question, ``{question, answers, contexts: [{id, text, rag_answers: {reader: answer},
label}]}``; ``corpus.jsonl`` all lines of train, test and dev in an order shuffled with seed 42. Retrievers, rerankers
and readers of the paper's experiments start from these. Bytes are those of the scripts (JSON in ASCII, Python's
shuffle), at a fraction of their time and memory: a text is escaped once, Arrow joins the pieces of many passages at a
time, and the buffer that it joins them into is what is written.
"""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quit.common.progress import advance
from quit.dataset.dataset import Block, Dataset
from quit.evaluate.labels import SPLITS
from quit.export.files import ExportFolder, FormatFacts
from quit.export.formats import Options
from quit.export.lines import buffer_of
from quit.export.release_json import PublishedNames, names_facts, nested_order, published_names, reader_keys
from quit.stages.labelling.passages import ranges

SHUFFLED = ("train", "test", "dev")
"""The order in which the scripts put the splits together before they shuffle."""
SEED = 42
PASSAGES_AT_ONCE = 5_000
BYTES_AT_ONCE = 1 << 27
"""Bounds of what is joined at a time: small, so that the allocator reuses its memory, which takes a quarter off the
time; and of long hints less, because an Arrow array holds 2 GB at most."""


def write(dataset: Dataset, folder: ExportFolder, options: Options) -> FormatFacts:
    """Write the seven files; return which evaluation reader stands behind which key of ``rag_answers``.

    Raises ``SettingsError`` as the release JSON does, where ``paper_keys`` is asked for and the readers are not three
    and three.
    """
    keys = reader_keys(dataset, options.paper_keys)
    infos = {key: info for key, info in keys.items() if info.role != "labeler"}
    names = published_names(dataset, options.paper_keys)
    passages = _Passages(dataset, names)
    for split in SPLITS:
        _write_split(dataset, split, passages, list(infos), folder)
    _write_corpus(dataset, passages, folder)
    return {
        **names_facts(dataset, names, options.paper_keys),
        "shuffle": {"order": list(SHUFFLED), "seed": SEED},
        "readers": [
            {"key": key, "name": info.name, "kind": info.kind, "identity": info.identity} for key, info in infos.items()
        ],
    }


class _Passages:
    """Every passage as JSON text. ``order``: the rows of the permutation table in the order of the nested JSON; a
    passage's number is its position there. ``at_once``: how many to join at a time."""

    def __init__(self, dataset: Dataset, names: PublishedNames) -> None:
        permutations = dataset.rows.table
        self.order = nested_order(permutations)
        self._n = permutations.n
        self._sizes = permutations.hints[self.order].astype(np.int64)
        starts = permutations.offsets[self.order].astype(np.int64)
        self._members = permutations.indices[ranges(starts, self._sizes)].astype(np.int64)
        self._starts = np.cumsum(self._sizes) - self._sizes
        rows = pa.array(self.order)
        subsets = pa.array(names.subsets)
        self._tails = pc.binary_join_element_wise("", subsets.take(rows), permutations.permutation.take(rows), "_")
        self._names = pa.array([_escape(question_id) for question_id in names.ids])
        hints = [[_escape(row["hint"]) for row in hint_rows] for hint_rows in dataset.selected_hints]
        self._hints = pa.array([hint for texts in hints for hint in texts])
        longest = max(sum(map(len, texts)) for texts in hints)
        self.at_once = max(1, min(PASSAGES_AT_ONCE, BYTES_AT_ONCE // longest))

    def __len__(self) -> int:
        return len(self.order)

    def names(self, positions: np.ndarray, numbers: np.ndarray) -> tuple[pa.Array, pa.Array]:
        """Return the question ids of some passages, and what their own ids have after these."""
        return self._names.take(pa.array(positions)), self._tails.take(pa.array(numbers))

    def texts(self, positions: np.ndarray, numbers: np.ndarray) -> pa.Array:
        """Return the texts of some passages; ``positions``: of their questions."""
        sizes = self._sizes[numbers]
        hints = self._members[ranges(self._starts[numbers], sizes)] + np.repeat(positions * self._n, sizes)
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
        return pc.binary_join(pa.ListArray.from_arrays(offsets, self._hints.take(pa.array(hints))), " ")

    def lines(self, positions: np.ndarray, numbers: np.ndarray, texts: pa.Array) -> pa.Array:
        """Return the lines of ``index.jsonl`` of some passages."""
        name, tail = self.names(positions, numbers)
        pieces = ('{"id": "', name, tail, '", "contents": "', texts, '", "title": "', name, '"}\n')
        return pc.binary_join_element_wise(*pieces, "")


def _write_split(dataset: Dataset, split: str, passages: _Passages, readers: list[str], folder: ExportFolder) -> None:
    positions = dataset.positions(split)
    index, retriever = f"{split}/index.jsonl", f"{split}/retriever.jsonl"
    with folder.path(index).open("wb") as lines, folder.path(retriever).open("wb") as records:
        for block in dataset.blocks(positions, max(1, passages.at_once // len(passages))):
            owner = np.repeat(block.positions, len(passages))
            numbers = np.tile(np.arange(len(passages)), len(block.positions))
            head, *rest = _around_texts(dataset, block, passages.order, readers)
            for start in range(0, len(owner), passages.at_once):
                rows = slice(start, start + passages.at_once)
                texts = passages.texts(owner[rows], numbers[rows])
                folder.write(lines, buffer_of(passages.lines(owner[rows], numbers[rows], texts)))
                names = passages.names(owner[rows], numbers[rows])
                after = [piece if isinstance(piece, str) else piece[rows] for piece in rest]
                pieces = (head[rows], *names, '", "text": "', texts, '", "rag_answers": {', *after)
                folder.write(records, buffer_of(pc.binary_join_element_wise(*pieces, "")))
    folder.record(retriever, len(positions))
    folder.record(index, len(positions) * len(passages))


def _around_texts(dataset: Dataset, block: Block, order: np.ndarray, readers: list[str]) -> list[Any]:
    """Return what the lines of ``retriever.jsonl`` have before a passage's id and after its text: columns with a value
    per passage of the block, and constants."""
    heads = [
        json.dumps({"question": dataset.question_of[position], "answers": dataset.valid_answers_of[position]})[:-1]
        + ', "contexts": [{"id": "'
        for position in block.positions.tolist()
    ]
    head, tail = np.zeros((2, len(heads), len(order)), dtype=np.int64)
    head[:, 0], tail[:, -1] = np.arange(1, len(heads) + 1), 1
    codes = block.codes.reshape(len(heads), len(order), -1)[:, order]
    values = pa.array([json.dumps(value) for value in block.values])
    answers: list[Any] = []
    for number, name in enumerate(readers):
        reader_codes = codes[:, :, codes.shape[2] - len(readers) + number]
        answers += [f"{', ' if number else ''}{json.dumps(name)}: ", values.take(pa.array(reader_codes.ravel()))]
    return [
        pa.array([', {"id": "', *heads]).take(pa.array(head.ravel())),
        *answers,
        '}, "label": ',
        pa.array(["0", "1", "2"]).take(pa.array(block.labels.reshape(len(heads), -1)[:, order].ravel())),
        pa.array(["}", "}]}\n"]).take(pa.array(tail.ravel())),
    ]


def _write_corpus(dataset: Dataset, passages: _Passages, folder: ExportFolder) -> None:
    positions = np.concatenate([dataset.positions(split) for split in SHUFFLED])
    permutation = list(range(len(positions) * len(passages)))
    random.Random(SEED).shuffle(permutation)
    order = np.array(permutation, dtype=np.int64)
    with folder.path("corpus.jsonl").open("wb") as file:
        for start in range(0, len(order), passages.at_once):
            owner, numbers = np.divmod(order[start : start + passages.at_once], len(passages))
            owner = positions[owner]
            folder.write(file, buffer_of(passages.lines(owner, numbers, passages.texts(owner, numbers))))
            advance(f"{dataset.writing}: corpus", len(owner), len(order))
    folder.record("corpus.jsonl", len(order))


def _escape(text: str) -> str:
    """Return a text as it is written between quotes."""
    return json.dumps(text)[1:-1]

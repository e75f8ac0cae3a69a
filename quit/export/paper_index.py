"""The seven files that the paper's index scripts make of its release JSON, made straight from the tables.

``{train,dev,test}/index.jsonl`` has one line a passage, ``{id, contents, title: question id}``; ``{split}/retriever.jsonl`` one a
question, ``{question, answers, contexts: [{id, text, rag_answers: {reader: answer}, label}]}``; ``corpus.jsonl`` all lines of train,
test and dev in an order shuffled with seed 42. Retrievers, rerankers and readers of the paper's experiments start from these.
Bytes are those of the scripts (JSON in ASCII, Python's shuffle), at a fraction of their time and memory: a text is escaped once, a
question is one ``join`` over ready pieces, and the shuffled corpus is gathered from the written files.
"""

from __future__ import annotations

import json
import mmap
import random
from collections.abc import Iterator
from contextlib import ExitStack
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from quit.export.dataset import SPLITS, Block, Dataset
from quit.export.files import ExportFolder, Options
from quit.export.release_json import nested_order, reader_keys

SHUFFLED = ("train", "test", "dev")
"""The order in which the scripts put the splits together before they shuffle."""
SEED = 42
GATHERED = 100_000
"""Lines of the corpus gathered at a time: some 50 MB."""


def write(dataset: Dataset, folder: ExportFolder, options: Options) -> dict[str, Any]:
    """Write the seven files; return which evaluation reader stands behind which key of ``rag_answers``.

    Raises ``SettingsError`` as the release JSON does, where ``paper_keys`` is asked for and the readers are not three and three.
    """
    keys = reader_keys(dataset, options.paper_keys)
    shown = {key: info for key, info in keys.items() if info.role != "labeler"}
    pieces = _Pieces(dataset, list(shown), len(keys) - len(shown))
    lengths = {split: _write_split(dataset, split, pieces, folder) for split in SPLITS}
    _write_corpus(folder, lengths)
    return {
        "paper_keys": options.paper_keys,
        "shuffle": {"order": list(SHUFFLED), "seed": SEED},
        "readers": [
            {"key": key, "name": info.name, "kind": info.kind, "identity": info.identity} for key, info in shown.items()
        ],
    }


class _Pieces:
    """What a question's lines are put together from. Its own pieces come first, those of every question after them."""

    def __init__(self, dataset: Dataset, readers: list[str], labelers: int) -> None:
        one = dataset.permutations
        self.n, self.labelers, self.readers = one.n, labelers, len(readers)
        self.order = nested_order(one)
        tails = [f"_{one.subset[row]}_{one.permutation[row]}" for row in self.order.tolist()]
        # Own: id, question id as title, hints as first and as later ones, then label and answers of each passage.
        hints, own = 2, 2 + 2 * one.n
        width = 1 + len(readers)
        shared = own + len(self.order) * width
        names = [f"{', ' if place else ''}{_dump(name)}: " for place, name in enumerate(readers)]
        fixed = ['{"id": "', ', {"id": "', '", "text": "', '", "rag_answers": {', '}, "label": ', "}", *names]
        fixed += ['", "contents": "', '", "title": "', '"}\n', *tails]
        first, later, text, answers, label, end, name = range(shared, shared + 7)
        contents, title, stop, tail = range(name + len(names), name + len(names) + 4)
        record, line = [], []
        for place, row in enumerate(self.order.tolist()):
            chosen = one.indices[one.offsets[row] : one.offsets[row + 1]].tolist()
            written = [hints + chosen[0], *(hints + one.n + index for index in chosen[1:])]
            values = own + place * width
            given = [each for at in range(len(names)) for each in (name + at, values + 1 + at)]
            opening = later if place else first
            record += [opening, 0, tail + place, text, *written, answers, *given, label, values, end]
            line.append(itemgetter(first, 0, tail + place, contents, *written, title, 1, stop))
        self._fixed, self._record, self._lines = fixed, itemgetter(*record), line

    def lines(self, dataset: Dataset, block: Block) -> Iterator[tuple[str, list[str]]]:
        """Yield a question's line of ``retriever.jsonl`` and its lines of ``index.jsonl``."""
        escaped = np.array([_dump(value) for value in block.values], dtype=object)
        labels = np.array(["0", "1", "2"], dtype=object)[block.labels[:, self.order]]
        answers = escaped[block.codes[:, self.order][:, :, self.labelers :]]
        own = np.concatenate([labels[:, :, None], answers], axis=2)
        for position, values in zip(block.positions.tolist(), own, strict=True):
            name = _dump(dataset.ids[position])[1:-1]
            texts = [_dump(row["hint"])[1:-1] for row in dataset.selected_hints[position]]
            pieces = [name, name, *texts, *(f" {text}" for text in texts), *values.ravel().tolist(), *self._fixed]
            head = {"question": dataset.questions[position], "answers": dataset.valid_answers[position]}
            contexts = "".join(self._record(pieces))
            lines = ["".join(line(pieces)) for line in self._lines]
            yield f'{_dump(head)[:-1]}, "contexts": [{contexts}]}}\n', lines


def _write_split(dataset: Dataset, split: str, pieces: _Pieces, folder: ExportFolder) -> np.ndarray:
    """Write a split's two files; return the length in bytes of each line of its index, int64."""
    positions = dataset.positions(split)
    index, retriever = f"{split}/index.jsonl", f"{split}/retriever.jsonl"
    lengths: list[np.ndarray] = [np.zeros(0, dtype=np.int64)]
    with folder.path(index).open("wb") as lines, folder.path(retriever).open("wb") as records:
        for block in dataset.blocks(positions):
            for record, made in pieces.lines(dataset, block):
                records.write(record.encode("ascii"))
                lines.write("".join(made).encode("ascii"))
                lengths.append(np.fromiter(map(len, made), dtype=np.int64, count=len(made)))
    folder.done(retriever, len(positions))
    folder.done(index, len(positions) * len(dataset.permutations))
    return np.concatenate(lengths)


def _write_corpus(folder: ExportFolder, lengths: dict[str, np.ndarray]) -> None:
    counts = [len(lengths[split]) for split in SHUFFLED]
    shuffled = list(range(sum(counts)))
    random.Random(SEED).shuffle(shuffled)
    order = np.array(shuffled, dtype=np.int64)
    del shuffled
    starts = np.cumsum([0, *counts])
    with ExitStack() as stack:
        sources = [
            _LineFile(folder.path(f"{split}/index.jsonl"), lengths[split], stack) if lengths[split].size else None
            for split in SHUFFLED
        ]
        with folder.path("corpus.jsonl").open("wb") as file:
            for begin in range(0, len(order), GATHERED):
                some = order[begin : begin + GATHERED]
                which = np.searchsorted(starts, some, side="right") - 1
                taken, places = [], []
                for number, source in enumerate(sources):
                    if source is not None:
                        places.append(np.flatnonzero(which == number))
                        taken.append(source.take(some[places[-1]] - starts[number]))
                back = np.argsort(np.concatenate(places))
                made = pa.concat_arrays(taken).take(pa.array(back))
                file.write(made.buffers()[2])
    folder.done("corpus.jsonl", len(order))


class _LineFile:
    """Lines of a file by number, without holding the file: what was read leaves memory after each gathering."""

    def __init__(self, path: Path, lengths: np.ndarray, stack: ExitStack) -> None:
        file = stack.enter_context(path.open("rb"))
        self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(self._map)]
        self._lines = pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(lengths), buffers)

    def take(self, numbers: np.ndarray) -> pa.Array:
        """Return some lines."""
        made = self._lines.take(pa.array(numbers))
        if hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED)
        return made


def _dump(value: Any) -> str:
    return json.dumps(value)

"""The seven files that the paper's index scripts make of its release JSON, made straight from the tables.

``{train,dev,test}/index.jsonl`` has one line a passage, ``{id, contents, title: question id}``;
``{split}/retriever.jsonl`` one a question, ``{question, answers, contexts: [{id, text, rag_answers: {reader: answer},
label}]}``; ``corpus.jsonl`` all lines of train, test and dev in an order shuffled with seed 42. Retrievers, rerankers
and readers of the paper's experiments start from these. Bytes are those of the scripts (JSON in ASCII, Python's
shuffle), at a fraction of their time and memory: a text is escaped once, a question is one ``join`` over ready pieces,
and the shuffled corpus is gathered from the written files.
"""

from __future__ import annotations

import json
import mmap
import random
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from quit.export.dataset import SPLITS, Block, Dataset
from quit.export.files import ExportFolder, Options
from quit.export.release_json import nested_order, reader_keys

SHUFFLED = ("train", "test", "dev")
"""The order in which the scripts put the splits together before they shuffle."""
SEED = 42
SCATTERED = 50_000
"""Lines put to their places in the corpus before its pages are let go: each brings one into memory, some 200 MB in
all."""


def write(dataset: Dataset, folder: ExportFolder, options: Options) -> dict[str, Any]:
    """Write the seven files; return which evaluation reader stands behind which key of ``rag_answers``.

    Raises ``SettingsError`` as the release JSON does, where ``paper_keys`` is asked for and the readers are not three
    and three.
    """
    keys = reader_keys(dataset, options.paper_keys)
    shown = {key: info for key, info in keys.items() if info.role != "labeler"}
    pieces = _Pieces(dataset, list(shown), len(keys) - len(shown))
    sizes = {split: pieces.sizes(dataset, dataset.positions(split)) for split in SPLITS}
    offsets, total = _places(sizes)
    with _Scattered(folder.path("corpus.jsonl"), total) as corpus:
        for split in SPLITS:
            _write_split(dataset, split, pieces, folder, corpus, offsets[split])
    folder.done("corpus.jsonl", sum(map(len, sizes.values())))
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
        permutations = dataset.permutations
        self.n, self.labelers, self.readers = permutations.n, labelers, len(readers)
        self.order = nested_order(permutations)
        tails = [f"_{permutations.subset[row]}_{permutations.permutation[row]}".encode() for row in self.order.tolist()]
        # Own: id, question id as title, hints as first and as later ones, then label and answers of each passage.
        hints, own = 2, 2 + 2 * permutations.n
        width = 1 + len(readers)
        shared = own + len(self.order) * width
        names = [(b", " if position else b"") + _dump(name) + b": " for position, name in enumerate(readers)]
        fixed = [b'{"id": "', b', {"id": "', b'", "text": "', b'", "rag_answers": {', b'}, "label": ', b"}", *names]
        fixed += [b'", "contents": "', b'", "title": "', b'"}\n', *tails]
        first, later, text, answers, label, end, name = range(shared, shared + 7)
        contents, title, stop, tail = range(name + len(names), name + len(names) + 4)
        record, line = [], []
        for position, row in enumerate(self.order.tolist()):
            chosen = permutations.indices[permutations.offsets[row] : permutations.offsets[row + 1]].tolist()
            written = [hints + chosen[0], *(hints + permutations.n + index for index in chosen[1:])]
            values = own + position * width
            given = [each for at in range(len(names)) for each in (name + at, values + 1 + at)]
            opening = later if position else first
            record += [opening, 0, tail + position, text, *written, answers, *given, label, values, end]
            line.append(itemgetter(first, 0, tail + position, contents, *written, title, 1, stop))
        self._fixed, self._record, self._lines = fixed, itemgetter(*record), line
        self._members = np.zeros((len(self.order), permutations.n), dtype=np.int64)
        for position, row in enumerate(self.order.tolist()):
            self._members[position, permutations.indices[permutations.offsets[row] : permutations.offsets[row + 1]]] = 1
        always = sum(len(fixed[index - shared]) for index in (first, contents, title, stop))
        self._around = always + np.array([len(name) for name in tails], dtype=np.int64)

    def lines(self, dataset: Dataset, block: Block) -> Iterator[tuple[bytes, list[bytes]]]:
        """Yield a question's line of ``retriever.jsonl`` and its lines of ``index.jsonl``."""
        escaped = np.array([_dump(value) for value in block.values], dtype=object)
        labels = np.array([b"0", b"1", b"2"], dtype=object)[block.labels[:, self.order]]
        answers = escaped[block.codes[:, self.order][:, :, self.labelers :]]
        own = np.concatenate([labels[:, :, None], answers], axis=2)
        for position, values in zip(block.positions.tolist(), own, strict=True):
            name, texts = self._texts(dataset, position)
            pieces = [name, name, *texts, *(b" " + text for text in texts), *values.ravel().tolist(), *self._fixed]
            head = {"question": dataset.questions[position], "answers": dataset.valid_answers[position]}
            contexts = b"".join(self._record(pieces))
            lines = [b"".join(line(pieces)) for line in self._lines]
            yield _dump(head)[:-1] + b', "contexts": [' + contexts + b"]}\n", lines

    def sizes(self, dataset: Dataset, positions: np.ndarray) -> np.ndarray:
        """Return the length in bytes of every line of ``index.jsonl``, int64, without making them."""
        lengths = np.empty((len(positions), len(self.order)), dtype=np.int64)
        for row, position in enumerate(positions.tolist()):
            name, texts = self._texts(dataset, position)
            hints = np.array([len(text) + 1 for text in texts])  # with the space before it, which the first has not
            lengths[row] = self._around + 2 * len(name) + self._members @ hints - 1
        return lengths.ravel()

    @staticmethod
    def _texts(dataset: Dataset, position: int) -> tuple[bytes, list[bytes]]:
        texts = [_dump(row["hint"])[1:-1] for row in dataset.selected_hints[position]]
        return _dump(dataset.ids[position])[1:-1], texts


def _places(sizes: dict[str, np.ndarray]) -> tuple[dict[str, np.ndarray], int]:
    """Return where each line of each split begins in the shuffled corpus, and the corpus's length in bytes."""
    whole = np.concatenate([sizes[split] for split in SHUFFLED])
    shuffled = list(range(len(whole)))
    random.Random(SEED).shuffle(shuffled)
    order = np.array(shuffled, dtype=np.int64)
    ends = np.cumsum(whole[order])
    begins = np.empty_like(ends)
    begins[order] = ends - whole[order]
    borders = np.cumsum([len(sizes[split]) for split in SHUFFLED])[:-1]
    return dict(zip(SHUFFLED, np.split(begins, borders), strict=True)), int(ends[-1])


def _write_split(
    dataset: Dataset, split: str, pieces: _Pieces, folder: ExportFolder, corpus: _Scattered, offsets: np.ndarray
) -> None:
    """Write a split's two files, and its lines to their places in the corpus."""
    positions = dataset.positions(split)
    index, retriever = f"{split}/index.jsonl", f"{split}/retriever.jsonl"
    done = 0
    with folder.path(index).open("wb") as lines, folder.path(retriever).open("wb") as records:
        for block in dataset.blocks(positions):
            for record, index_lines in pieces.lines(dataset, block):
                records.write(record)
                lines.writelines(index_lines)
                corpus.put(index_lines, offsets[done : done + len(index_lines)].tolist())
                done += len(index_lines)
    folder.done(retriever, len(positions))
    folder.done(index, done)


class _Scattered:
    """A file of known length, written line by line at places far apart; a context manager."""

    def __init__(self, path: Path, size: int) -> None:
        self._file = path.open("w+b")
        self._file.truncate(size)
        self._map = mmap.mmap(self._file.fileno(), size, access=mmap.ACCESS_WRITE)
        self._touched = 0

    def put(self, lines: list[bytes], offsets: list[int]) -> None:
        """Write each line at its offset."""
        view = self._map
        for line, offset in zip(lines, offsets, strict=True):
            view[offset : offset + len(line)] = line
        self._touched += len(lines)
        if self._touched >= SCATTERED and hasattr(mmap, "MADV_DONTNEED"):
            view.madvise(mmap.MADV_DONTNEED)  # they stay in the file, and leave this process
            self._touched = 0

    def __enter__(self) -> _Scattered:
        return self

    def __exit__(self, *_: object) -> None:
        self._map.close()
        self._file.close()


def _dump(value: Any) -> bytes:
    return json.dumps(value).encode("ascii")

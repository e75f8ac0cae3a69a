"""What an export is made from: the tables of a release, checked once and read block by block.

Full size is 7,401 questions, 2.4 million passages and 14.4 million answers. Every format therefore reads ``Block``s
of some hundred questions: all work inside a block is Arrow or NumPy, and memory does not grow with the dataset.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quit.common.ids import content_hash
from quit.common.progress import advance
from quit.errors import InputError
from quit.evaluate.normalize import normalize_answer
from quit.models.protocols import NO_ANSWER
from quit.stages.passages import PermutationTable, permutation_table

SPLITS = ("train", "dev", "test")
FULLY, PARTIALLY = 2, 1  # relevance labels (paper, section 3.2.2); 0, another question's passage, is never stored


@dataclass(frozen=True, slots=True)
class ReaderInfo:
    """One reader: ``role`` is ``labeler`` (its answers decide labels) or ``reader``; ``kind`` such as ``embedded``."""

    name: str
    role: str
    identity: str
    kind: str


def fingerprint_of(provenance: Mapping[str, Any], readers: Sequence[ReaderInfo]) -> str:
    """Return the fingerprint of what an export is made from: inputs, settings and models, not the moment."""
    return content_hash("release", dict(provenance), [info.identity for info in readers])


@dataclass(frozen=True)
class ExportTables:
    """The tables of a release (see ``schemas.tables``) and where they come from.

    All but ``answers`` are tables of that name. ``splits`` decides which questions are exported and in which order;
    the other tables may hold more. ``passages``, ``labels`` and every table of ``answers`` (one a reader, by name)
    keep the rows of a question together, permutations depth first. Of these only question_id, permutation and label
    or answer are read; string columns may be dictionary-encoded, which at full size keeps the answers in 0.2 GB.
    ``verdicts`` holds one row a question and answer_key: the verdict in force. ``readers`` is in profile order.

    ``provenance`` may have: ``settings``, ``fingerprints``, ``program_version``, ``release`` (its name), ``title``,
    ``reviews`` (how people checked it, in words) and ``sources``, a list of mappings with any of name, file, checksum,
    licence, citation, url. ``embedded``: whether any reader is an embedded guesser, which every export must say.
    ``statistics``: a release's own (``quit.evaluate.statistics.Statistics.to_dict``), None where they have to be
    computed.
    """

    questions: pa.Table
    hints: pa.Table
    ranked_hints: pa.Table
    descriptions: pa.Table
    splits: pa.Table
    passages: pa.Table
    answers: Mapping[str, pa.Table]
    verdicts: pa.Table
    labels: pa.Table
    valid_answers: pa.Table
    readers: tuple[ReaderInfo, ...]
    provenance: Mapping[str, Any] = field(default_factory=dict)
    embedded: bool = False
    statistics: Mapping[str, Any] | None = None

    @property
    def fingerprint(self) -> str:
        """The release's fingerprint: that of its provenance (inputs, settings, models), not of the moment."""
        return fingerprint_of(self.provenance, self.readers)

    @property
    def ordered_readers(self) -> tuple[ReaderInfo, ...]:
        """Labelers first, then the other readers, each in profile order."""
        return tuple(sorted(self.readers, key=lambda info: info.role != "labeler"))

    @property
    def labelers(self) -> tuple[ReaderInfo, ...]:
        return tuple(info for info in self.readers if info.role == "labeler")


@dataclass(frozen=True)
class Block:
    """Some questions of a split with all their passages: Q questions, P passages each, R readers (labelers first).

    ``labels``: int8, shape (Q, P). ``codes``: int32, shape (Q, P, R), positions in ``values``, the distinct answers of
    the block, sorted. ``correct``: int8, shape (Q, len(values)): 1 correct, 0 not, -1 unjudged (or not given for the
    question). ``positions``: int64, shape (Q,), places of the questions in ``Dataset.ids``.
    """

    positions: np.ndarray
    labels: np.ndarray
    codes: np.ndarray
    values: list[str]
    correct: np.ndarray


class Dataset:
    """The checked view of ``ExportTables`` that formats read. Positions count the rows of ``splits``.

    Raises ``InputError`` when the tables do not fit together: a question without its row, hints, passages, answers or
    valid answers, rows out of order, an unknown split, two verdicts on one answer.
    """

    def __init__(self, tables: ExportTables) -> None:
        self.tables = tables
        self.writing = "export"  # what progress is reported about
        self.ids: list[str] = tables.splits["question_id"].to_pylist()
        self._place = {question_id: position for position, question_id in enumerate(self.ids)}
        if not self.ids:
            raise InputError("There is nothing to export: the table 'splits' holds no question.")
        if len(self._place) < len(self.ids):
            raise InputError("The table 'splits' holds a question twice.")
        if len({info.name for info in tables.readers}) < len(tables.readers):
            raise InputError("Two readers have the same name.")
        if not tables.labelers:
            raise InputError("An export needs at least one labeler among its readers.")
        self.split_names: list[str] = tables.splits["split"].to_pylist()
        if unknown := set(self.split_names) - set(SPLITS):
            raise InputError(f"Unknown split {min(unknown)!r} in the table 'splits': expected train, dev or test.")
        self.permutations: PermutationTable = permutation_table(self._hints_a_question())
        self._rows = {
            name: _Rows(name, table, self.ids, len(self.permutations)) for name, table in self._big_tables().items()
        }

    def _big_tables(self) -> dict[str, pa.Table]:
        tables = {"passages": self.tables.passages, "labels": self.tables.labels}
        for info in self.tables.readers:
            if info.name not in self.tables.answers:
                raise InputError(f"There are no answers of the reader {info.name!r}.")
            tables[f"answers of {info.name}"] = self.tables.answers[info.name]
        return tables

    def positions(self, split: str) -> np.ndarray:
        """Return the positions of a split's questions, ascending: int64, empty for a split without questions."""
        return np.flatnonzero(np.array(self.split_names, dtype=object) == split)

    @property
    def passage_count(self) -> int:
        return len(self.ids) * len(self.permutations)

    # Small tables, in memory as a whole.

    def aligned(self, name: str) -> pa.Table:
        """Return ``questions``, ``descriptions`` or ``splits`` with one row a question, in the order of ``ids``."""
        table = getattr(self.tables, name)
        rows = pc.index_in(pa.array(self.ids), _plain(table["question_id"]))
        if rows.null_count:
            missing = self.ids[rows.is_null().index(True).as_py()]
            raise InputError(f"The table {name!r} has no row for the question {missing!r}.")
        return table.take(rows)

    @cached_property
    def questions(self) -> list[str]:
        return self.aligned("questions")["question"].to_pylist()

    @cached_property
    def valid_answers(self) -> list[list[str]]:
        """Accepted surface forms of each question, in table order."""
        answers: list[list[str]] = [[] for _ in self.ids]
        for position, answer in self._of_ours(self.tables.valid_answers, "answer"):
            answers[position].append(answer)
        if [] in answers:
            raise InputError(f"The table 'valid_answers' has no row for the question {self.ids[answers.index([])]!r}.")
        return answers

    @cached_property
    def selected_hints(self) -> list[list[dict]]:
        """The hints of each question that make passages, in rank order: rows of ``ranked_hints``."""
        table = self.tables.ranked_hints
        rows = table.filter(table["selected"]).to_pylist()
        rows_of: list[list[dict]] = [[] for _ in self.ids]
        for row in sorted(rows, key=lambda row: row["rank"]):
            if (position := self._place.get(row["question_id"])) is not None:
                rows_of[position].append(row)
        return rows_of

    def hint_lists(self, positions: np.ndarray) -> list[list[str]]:
        """Return the texts of the hints of some questions, for ``iter_passage_texts``."""
        advance(f"{self.writing}: passages", len(positions), len(self.ids))
        return [[row["hint"] for row in self.selected_hints[position]] for position in positions]

    def _hints_a_question(self) -> int:
        counts = [len(hints) for hints in self.selected_hints]
        for position, count in enumerate(counts):
            if not count or count != counts[0]:
                raise InputError(
                    f"The question {self.ids[position]!r} has {count} selected hints in the table 'ranked_hints', "
                    f"but {self.ids[0]!r} has {counts[0]}: every question must have the same number, at least one."
                )
        return counts[0]

    @cached_property
    def _verdicts(self) -> dict[tuple[int, str], bool | None]:
        verdicts: dict[tuple[int, str], bool | None] = {}
        for position, key, correct in self._of_ours(self.tables.verdicts, "answer_key", "correct"):
            if verdicts.setdefault((position, key), correct) is not correct:
                raise InputError(
                    f"The table 'verdicts' has two verdicts on {key!r} for the question {self.ids[position]!r}: "
                    "pass the one in force."
                )
        return verdicts

    def _of_ours(self, table: pa.Table, *columns: str) -> Iterator[tuple]:
        names = (table[name].to_pylist() for name in ("question_id", *columns))
        for name, *rest in zip(*names, strict=True):
            if (position := self._place.get(name)) is not None:
                yield position, *rest

    # Large tables, block by block.

    def labels(self, positions: np.ndarray) -> np.ndarray:
        """Return the labels of some questions, int8, shape (questions, passages). Raises ``InputError`` as
        ``block``."""
        advance(f"{self.writing}: labels", len(positions), len(self.ids))
        self._rows["passages"].column(positions, None, self.permutations.permutation)
        labels = self._rows["labels"].column(positions, "label", self.permutations.permutation)
        assert labels is not None  # a column was named
        checked = labels.to_numpy(zero_copy_only=False).astype(np.int8).reshape(len(positions), len(self.permutations))
        if not np.isin(checked, (PARTIALLY, FULLY)).all():
            raise InputError(f"The table 'labels' holds a label that is neither {PARTIALLY} nor {FULLY}.")
        return checked

    def block(self, positions: np.ndarray) -> Block:
        """Return some questions with labels and answers (see ``Block``); 100 to 300 at a time are fastest.

        Raises ``InputError`` when rows are out of order, or when a label does not follow from the labelers' answers and
        the valid answers: a release must allow everyone to recompute its labels.
        """
        shape = (len(positions), len(self.permutations))
        labels = self.labels(positions)
        seen: dict[str, int] = {}
        columns = []
        for info in self.tables.ordered_readers:
            given = self._rows[f"answers of {info.name}"].column(positions, "answer", self.permutations.permutation)
            columns.append(_codes(given, seen).reshape(shape))
        # Sorted, because the order in which values are found depends on how the columns happen to be encoded.
        values = sorted(seen)
        code_of = {value: code for code, value in enumerate(values)}
        codes = np.array([code_of[value] for value in seen], dtype=np.int32)[np.stack(columns, axis=2)]
        block = Block(positions, labels, codes, values, self._correct(positions, codes, values))
        self._check_labels(block, code_of)
        return block

    def blocks(self, positions: np.ndarray, size: int = 128) -> Iterator[Block]:
        """Yield ``block`` for ``size`` questions at a time."""
        for start in range(0, len(positions), size):
            yield self.block(positions[start : start + size])
            advance(f"{self.writing}: answers", len(positions[start : start + size]), len(self.ids))

    def _correct(self, positions: np.ndarray, codes: np.ndarray, values: list[str]) -> np.ndarray:
        keys = [normalize_answer(value) for value in values]
        given = np.zeros((len(positions), len(values)), dtype=bool)
        given[np.arange(len(positions))[:, None, None], codes] = True
        verdicts = np.full(given.shape, -1, dtype=np.int8)
        for row, code in zip(*(axis.tolist() for axis in np.nonzero(given)), strict=True):
            verdict = self._verdicts.get((int(positions[row]), keys[code]))
            if verdict is not None:
                verdicts[row, code] = verdict
            elif values[code] == NO_ANSWER:  # needs no judge
                verdicts[row, code] = 0
        return verdicts

    def _check_labels(self, block: Block, code_of: Mapping[str, int]) -> None:
        valid = np.zeros(block.correct.shape, dtype=bool)
        for row, position in enumerate(block.positions):
            valid[row, [code_of[answer] for answer in self.valid_answers[position] if answer in code_of]] = True
        labelers = block.codes[:, :, : len(self.tables.labelers)]
        hit = valid[np.arange(len(valid))[:, None, None], labelers].any(axis=2)
        wrong = np.argwhere(np.where(hit, FULLY, PARTIALLY) != block.labels)
        if len(wrong):
            row, passage = wrong[0]
            raise InputError(
                f"{len(wrong)} labels do not follow from the labelers' answers and the valid answers, first that of "
                f"question {self.ids[block.positions[row]]!r}, permutation "
                f"{self.permutations.permutation[int(passage)].as_py()!r}: run the label stage again."
            )


class _Rows:
    """Finds the ``size`` rows of each question in a large table, without copying it."""

    def __init__(self, name: str, table: pa.Table, ids: Sequence[str], size: int) -> None:
        self.name, self.table, self.ids, self.size = name, table, ids, size
        names, starts = _runs(table["question_id"])
        start_of = dict(zip(names, starts, strict=True))
        if len(start_of) < len(names):
            raise InputError(f"The rows of a question are not together in the table {name!r}.")
        ends = dict(zip(names, [*starts[1:], table.num_rows], strict=True))
        for question_id in ids:
            rows = ends[question_id] - start_of[question_id] if question_id in start_of else 0
            if rows != size:
                raise InputError(
                    f"The table {name!r} has {rows} rows for the question {question_id!r}, expected {size}."
                )
        self.starts = np.array([start_of[question_id] for question_id in ids], dtype=np.int64)

    def column(self, positions: np.ndarray, name: str | None, permutation: pa.StringArray) -> pa.Array | None:
        """Return a column of the rows of some questions, after checking that they are in depth-first order."""
        starts = self.starts[positions]
        low, high = int(starts.min()), int(starts.max()) + self.size
        wanted = ((starts - low)[:, None] + np.arange(self.size)[None, :]).ravel()
        whole = len(wanted) == high - low and bool((np.diff(starts) > 0).all())

        def take(column: str) -> pa.Array:
            piece = _one(self.table[column].slice(low, high - low))
            return piece if whole else piece.take(pa.array(wanted))

        expected = permutation.take(np.tile(np.arange(self.size, dtype=np.int32), len(positions)))
        same = pc.fill_null(pc.equal(_plain(take("permutation")), expected), False)
        if not pc.all(same).as_py():
            first = self.ids[positions[same.index(False).as_py() // self.size]]
            raise InputError(f"The rows of question {first!r} in the table {self.name!r} are not in depth-first order.")
        if name is None:
            return None
        if (taken := take(name)).null_count:
            raise InputError(f"The column {name!r} of the table {self.name!r} holds a null.")
        return taken


def _runs(column: pa.ChunkedArray) -> tuple[list[str], list[int]]:
    """Return the value and the first row of each run of equal values."""
    names: list[str] = []
    starts: list[int] = []
    base = 0
    for chunk in column.chunks:
        if not len(chunk):
            continue
        encoded = chunk if pa.types.is_dictionary(chunk.type) else chunk.dictionary_encode()
        codes = encoded.indices.to_numpy(zero_copy_only=False)
        first = np.concatenate([[0], np.flatnonzero(np.diff(codes)) + 1])
        run_names = encoded.dictionary.take(pa.array(codes[first])).to_pylist()
        skip = 1 if names and run_names[0] == names[-1] else 0  # a run may continue in the next chunk
        names += run_names[skip:]
        starts += (first[skip:] + base).tolist()
        base += len(chunk)
    return names, starts


def _codes(column: pa.Array, code_of: dict[str, int]) -> np.ndarray:
    """Return each row's code in ``place``, to which new values are added: int32."""
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    used = np.unique(codes)  # a dictionary shared by the whole table is far larger than what a block uses
    shared = np.zeros(len(encoded.dictionary), dtype=np.int32)
    texts = encoded.dictionary.take(pa.array(used)).to_pylist()
    shared[used] = [code_of.setdefault(text, len(code_of)) for text in texts]
    return shared[codes]


def _one(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    combined = column.combine_chunks()
    return pa.concat_arrays(combined.chunks) if isinstance(combined, pa.ChunkedArray) else combined


def _plain(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    array = _one(column) if isinstance(column, pa.ChunkedArray) else column
    return array.cast(pa.string()) if pa.types.is_dictionary(array.type) else array

"""Passages, queries and relevance labels as lines of text, for the formats of retrieval tools.

2.4 million passages are assembled by Arrow: hints are escaped once each, joined to texts, and the texts to whole lines,
whose buffer is then the content of the file. Nothing here loops over passages in Python, and memory holds one range of
questions at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quit.common.ids import passage_id
from quit.common.safe import escapes, safe_id
from quit.dataset.dataset import FULLY, PARTIALLY, Dataset
from quit.evaluate.labels import SPLITS
from quit.export.files import ExportFolder
from quit.stages.labelling.passages import ROWS_A_RANGE, passage_hints, passage_texts

QUESTIONS_A_SHARD = 2_000
"""Questions whose passages share a file, where a format is sharded: 650,000 passages."""
_GRADES = pa.array(["0", str(PARTIALLY), str(FULLY)])


@dataclass(frozen=True)
class PassageLayout:
    """A line per passage: ``before``, its id, ``between``, its title and text ``join``-ed, ``after``; each of the three
    through ``escape``."""

    before: str
    between: str
    after: str
    join: Callable[[str, str], str]
    escape: Callable[[str], str]


@dataclass(frozen=True)
class QrelsLayout:
    """A file per set of queries, named by ``file``, under a line ``head``; its lines: the query's id, ``between``, the
    passage's, ``before_grade``, its label."""

    file: str
    between: str
    before_grade: str
    head: str = ""


@dataclass(frozen=True)
class PassageIds:
    """The ids of a dataset's questions and passages: ``{question id}_{subset}_{permutation}``, or given passages' own.
    ``escaped``: safe in every format (see ``quit.common.safe``)."""

    dataset: Dataset
    escaped: bool = True

    @cached_property
    def questions(self) -> list[str]:
        """The ids of all questions."""
        return [*map(self._escape, self.dataset.ids)]

    def of(self, positions: np.ndarray, prepare: Callable[[str], str] = str) -> pa.StringArray:
        """Return the ids of all passages of some questions, through ``prepare``."""
        if self.dataset.given is not None:
            names = self.dataset.given["id"].take(pa.array(self.dataset.rows.rows(positions))).to_pylist()
            return pa.array([prepare(self._escape(name)) for name in names], pa.string())
        tails = self._tails.take(self.dataset.rows.take(positions).codes)
        return pc.binary_join_element_wise(self.of_questions(positions, prepare), tails, "")

    def of_questions(self, positions: np.ndarray, prepare: Callable[[str], str] = str) -> pa.StringArray:
        """Return the question's id for each passage of some questions."""
        ids = pa.array([prepare(self.questions[position]) for position in positions], pa.string())
        return ids.take(self.dataset.rows.take(positions).owner)

    def __getitem__(self, number: int) -> str:
        """Return a passage's id; ``number``: its place among all."""
        if self.dataset.given is not None:
            return self._escape(self.dataset.given["id"][number].as_py())
        rows = self.dataset.rows
        return self.questions[rows.owner[number]] + self._tails[rows.codes[number]].as_py()

    @cached_property
    def _tails(self) -> pa.StringArray:
        """What follows the question's id, of each permutation."""
        return pa.array([passage_id("", name) for name in self.dataset.rows.table.permutation.to_pylist()], pa.string())

    def _escape(self, name: str) -> str:
        return safe_id(name) if self.escaped else name


@dataclass(frozen=True)
class Lines:
    """A dataset seen as lines."""

    ids: PassageIds
    sets: ClassVar = SPLITS

    @property
    def dataset(self) -> Dataset:
        return self.ids.dataset

    def escapes(self, texts: bool) -> dict:
        """Return what was escaped, for the manifest; ``texts``: whether texts were made fit for TSV too."""
        dataset = self.dataset
        rows = (row["hint"] for hints in dataset.selected_hints for row in hints)
        names = () if dataset.given is None else dataset.given["id"].unique().to_pylist()
        return escapes((*dataset.ids, *names), (*dataset.question_of, *rows) if texts else ())

    def ranges(self, positions: np.ndarray | None = None) -> Iterator[np.ndarray]:
        """Yield the positions of some questions (all, if None), as many at a time as fit into memory well."""
        positions = np.arange(len(self.dataset.ids)) if positions is None else positions
        return (positions[block] for block in self.dataset.rows.take(positions).split(ROWS_A_RANGE))

    def shards(self, file: str, ending: str) -> list[tuple[str, np.ndarray]]:
        """Return a file's name with its number for :data:`QUESTIONS_A_SHARD` questions at a time, and their
        positions."""
        parts = question_shards(np.arange(len(self.dataset.ids)))
        return [(f"{file}-{number:05d}{ending}", positions) for number, positions in enumerate(parts)]

    def texts(self, positions: np.ndarray, prepare: Callable[[str], str]) -> pa.StringArray:
        """Return the texts of all passages of some questions: their hints, through ``prepare``, joined by spaces."""
        hints = [[prepare(hint) for hint in hints] for hints in self.dataset.hint_lists(positions)]
        return passage_texts(hints, self.dataset.rows.take(positions))

    def documents(self, positions: np.ndarray, prepare: Callable[[str], str]) -> tuple[pa.StringArray, pa.StringArray]:
        """Return ids and texts of all passages of some questions: those of a corpus, where an id comes once, with its
        first question."""
        ids, texts = self.ids.of(positions, prepare), self.texts(positions, prepare)
        if self.dataset.given is None:
            return ids, texts
        is_first = pa.array(self._is_first[self.dataset.rows.rows(positions)])
        return ids.filter(is_first), texts.filter(is_first)

    @cached_property
    def _is_first(self) -> np.ndarray:
        """Whether no passage before has the own id of this one: bool, shape (passages,)."""
        assert self.dataset.given is not None
        mask = np.zeros(len(self.dataset.rows), bool)
        names = self.dataset.given["id"].to_numpy(zero_copy_only=False).astype(str)
        mask[np.unique(names, return_index=True)[1]] = True
        return mask

    def write_passages(
        self, folder: ExportFolder, file: str, layout: PassageLayout, part: np.ndarray | None = None
    ) -> int:
        """Write a line per passage, with an empty title, of some questions (all, if None); return how many."""
        between, after = layout.between + layout.join("", ""), layout.after + "\n"
        documents = (self.documents(block, layout.escape) for block in self.ranges(part))
        lines = (pc.binary_join_element_wise(layout.before, ids, between, texts, after, "") for ids, texts in documents)
        return write_arrays(folder, file, lines)

    def queries(self, name: str = "") -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Yield id, question and split of a split's questions, or of all."""
        for position in self.dataset.positions(name) if name else range(len(self.dataset.ids)):
            about = {"split": self.dataset.split_names[position]}
            yield self.ids.questions[position], self.dataset.question_of[position], about

    def write_qrels(self, folder: ExportFolder, layout: QrelsLayout, name: str) -> int:
        """Write the labels of the split ``name``; return how many."""

        def lines(part: np.ndarray) -> pa.StringArray:
            grades = _GRADES.take(pa.array(self.dataset.grades_of(part)))
            columns = (self.ids.of_questions(part), layout.between, self.ids.of(part), layout.before_grade, grades)
            return pc.binary_join_element_wise(*columns, "\n", "")

        parts = self.ranges(self.dataset.positions(name))
        return write_arrays(folder, layout.file.format(name), map(lines, parts), layout.head)


class PassageTexts:
    """Texts of single passages, for formats that hold a choice of them: ``prepare``d hints, joined by spaces."""

    def __init__(self, dataset: Dataset, prepare: Callable[[str], str] = str) -> None:
        self._rows = dataset.rows
        self._hints = [[prepare(row["hint"]) for row in hints] for hints in dataset.selected_hints]
        self._permutations = self._rows.table.permutation.to_pylist()

    def __getitem__(self, number: int) -> str:
        """Return a passage's text; ``number``: its place among all."""
        hints, permutation = self._hints[self._rows.owner[number]], self._permutations[self._rows.codes[number]]
        return " ".join(passage_hints(hints, permutation))


def question_shards(positions: np.ndarray) -> list[np.ndarray]:
    """Return the positions of some questions, :data:`QUESTIONS_A_SHARD` at a time."""
    return [positions[first : first + QUESTIONS_A_SHARD] for first in range(0, len(positions), QUESTIONS_A_SHARD)]


def write_texts(folder: ExportFolder, name: str, lines: Iterable[str], head: str = "") -> int:
    """Write texts, each with its line end, behind a ``head`` and record the file; return how many."""
    rows = 0
    with folder.path(name).open("w", encoding="utf-8", newline="") as file:
        file.write(head)
        for line in lines:
            file.write(line)
            rows += 1
    folder.record_lines(name, rows)
    return rows


def write_arrays(folder: ExportFolder, name: str, arrays: Iterable[pa.StringArray], head: str = "") -> int:
    """Write Arrow arrays of lines, each with its line end, behind a ``head`` and record the file; return how many."""
    rows = 0
    with folder.path(name).open("wb") as file:
        file.write(head.encode())
        for lines in arrays:
            file.write(buffer_of(lines))
            rows += len(lines)
    folder.record_lines(name, rows)
    return rows


def buffer_of(lines: pa.StringArray) -> memoryview:
    """Return the bytes of all texts of an array, one after the other, without copying them."""
    if not len(lines):
        return memoryview(b"")
    offsets = np.frombuffer(lines.buffers()[1], dtype=np.int32)
    return memoryview(lines.buffers()[2])[offsets[lines.offset] : offsets[lines.offset + len(lines)]]

"""Passages, queries and relevance labels as lines of text, for the formats of retrieval tools.

2.4 million passages are assembled by Arrow: hints are escaped once each, joined to texts, and the texts to whole lines,
whose buffer is then the content of the file. Nothing here loops over passages in Python, and memory holds one range of
questions at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quit.common.safe import escapes, json_inside, one_line, safe_id
from quit.dataset.dataset import FULLY, PARTIALLY, SPLITS, Dataset
from quit.export.files import ExportFolder
from quit.stages.labelling.passages import passage_hints, passage_texts

ROWS_A_RANGE = 80_000
"""Passages assembled at a time: see ``quit.stages.labelling.passages``."""
QUESTIONS_A_SHARD = 2_000
"""Questions whose passages share a file, where a format is sharded: 650,000 passages."""
LABELS = pa.array(["0", str(PARTIALLY), str(FULLY)])


@dataclass(frozen=True)
class Lines:
    """A dataset seen as lines. ``ids``: of the questions; safe in every format (see ``quit.common.safe``) if
    ``escaped``."""

    dataset: Dataset
    escaped: bool = True
    sets = SPLITS

    @cached_property
    def ids(self) -> list[str]:
        return [safe_id(question_id) if self.escaped else question_id for question_id in self.dataset.ids]

    @cached_property
    def tails(self) -> pa.StringArray:
        """What follows the question's id in the ids of its passages."""
        permutations = self.dataset.rows.table
        return pc.binary_join_element_wise("_", permutations.subset, "_", permutations.permutation, "")

    def escapes(self, texts: bool) -> dict:
        """Return what was escaped, for the manifest; ``texts``: whether texts were made fit for TSV too."""
        dataset = self.dataset
        rows = (row["hint"] for hints in dataset.selected_hints for row in hints)
        names = () if dataset.given is None else dataset.given["id"].unique().to_pylist()
        return escapes((*dataset.ids, *names), (*dataset.question_of, *rows) if texts else ())

    def ranges(self, positions: np.ndarray | None = None) -> Iterator[np.ndarray]:
        """Yield the positions of some questions (all, if None), as many at a time as fit into memory well."""
        positions = np.arange(len(self.ids)) if positions is None else positions
        return (positions[some] for some in self.dataset.rows.take(positions).split(ROWS_A_RANGE))

    def shards(self, file: str = "", ending: str = "") -> list[tuple[str, np.ndarray]]:
        """Return a file's name with its number for :data:`QUESTIONS_A_SHARD` questions at a time, and their
        positions."""
        parts = np.split(np.arange(len(self.ids)), range(QUESTIONS_A_SHARD, len(self.ids), QUESTIONS_A_SHARD))
        return [(f"{file}-{number:05d}{ending}", positions) for number, positions in enumerate(parts)]

    def passage_ids(self, positions: np.ndarray, prepare: Callable[[str], str] = str) -> pa.StringArray:
        """Return ``{question id}_{subset}_{permutation}`` of all passages of some questions, ids through
        ``prepare``; of given passages, their own ids."""
        if self.dataset.given is not None:
            names = self.dataset.given["id"].take(pa.array(self.dataset.rows.rows(positions))).to_pylist()
            return pa.array([prepare(safe_id(name) if self.escaped else name) for name in names], pa.string())
        tails = self.tails.take(self.dataset.rows.take(positions).codes)
        return pc.binary_join_element_wise(self.question_ids(positions, prepare), tails, "")

    def question_ids(self, positions: np.ndarray, prepare: Callable[[str], str] = str) -> pa.StringArray:
        """Return the question's id for each passage of some questions."""
        ids = pa.array([prepare(self.ids[position]) for position in positions], pa.string())
        return ids.take(self.dataset.rows.take(positions).owner)

    def texts(self, positions: np.ndarray, prepare: Callable[[str], str]) -> pa.StringArray:
        """Return the texts of all passages of some questions: their hints, through ``prepare``, joined by spaces."""
        hints = [[prepare(hint) for hint in hints] for hints in self.dataset.hint_lists(positions)]
        return passage_texts(hints, self.dataset.rows.take(positions))

    def documents(self, positions: np.ndarray, prepare: Callable[[str], str]) -> tuple[pa.StringArray, pa.StringArray]:
        """Return ids and texts of all passages of some questions: those of a corpus, where an id comes once, with its
        first question."""
        ids, texts = self.passage_ids(positions, prepare), self.texts(positions, prepare)
        if self.dataset.given is None:
            return ids, texts
        is_first = pa.array(self._is_first[self.dataset.rows.rows(positions)])
        return ids.filter(is_first), texts.filter(is_first)

    @cached_property
    def _is_first(self) -> np.ndarray:
        """Whether no passage before has the own id of this one: bool, shape (passages,)."""
        assert self.dataset.given is not None
        mask = np.zeros(len(self.dataset.rows), bool)
        mask[np.unique(self.dataset.given["id"].to_numpy(zero_copy_only=False).astype(str), return_index=True)[1]] = (
            True
        )
        return mask

    def write_passages(
        self,
        folder: ExportFolder,
        file: str,
        before: str,
        between: str,
        after: str,
        join: Callable[[str, str], str],
        part: np.ndarray | None = None,
    ) -> int:
        """Write ``before id between text after`` and a line end for every passage; return how many. ``join``: its empty
        title and its text.

        Ids and texts are escaped for JSON when ``before`` opens an object, else fitted to one field of a line.
        """
        between += join("", "")
        prepare = json_inside if before.startswith("{") else one_line
        after += "\n"
        with line_file(folder, file) as write:
            for some in self.ranges(part):
                ids, texts = self.documents(some, prepare)
                rows = write(pc.binary_join_element_wise(before, ids, between, texts, after, ""))
        return rows

    def queries(self, name: str = "") -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Yield id, question and split of a split's questions, or of all."""
        for position in self.dataset.positions(name) if name else range(len(self.ids)):
            about = {"split": self.dataset.split_names[position]}
            yield self.ids[position], self.dataset.question_of[position], about

    def write_qrels(self, folder: ExportFolder, file: str, name: str, parts: Iterable[str], head: str = "") -> int:
        """Write the labels of the split ``name``; return how many.

        ``parts``: constants before the question's id, between it and the passage's, before the label, and at the end
        (the line end comes by itself). ``head``: a first line.
        """
        first, middle, last, end = parts
        with line_file(folder, file, head) as write:
            rows = 0
            for part in self.ranges(self.dataset.positions(name)):
                labels = LABELS.take(pa.array(self.dataset.grades_of(part)))
                columns = [first, self.question_ids(part), middle, self.passage_ids(part), last, labels, end + "\n"]
                rows = write(pc.binary_join_element_wise(*columns, ""))
        return rows


class PassageTexts:
    """Single passages by number (their place among all), for formats that hold a choice of them.

    Hints pass through ``prepare`` once each; a passage is then one join.
    """

    def __init__(self, lines: Lines, prepare: Callable[[str], str]) -> None:
        self._rows = lines.dataset.rows
        self._hints = [[prepare(row["hint"]) for row in hints] for hints in lines.dataset.selected_hints]
        self._ids = [prepare(name) for name in lines.ids]
        self._tails = lines.tails.to_pylist()
        given = lines.dataset.given
        self._own = None if given is None else [prepare(safe_id(name)) for name in given["id"].to_pylist()]
        self._permutations = self._rows.table.permutation.to_pylist()

    def text(self, number: int) -> str:
        """Return a passage's text."""
        return " ".join(
            passage_hints(self._hints[self._rows.owner[number]], self._permutations[self._rows.codes[number]])
        )

    def id(self, number: int) -> str:
        """Return a passage's id."""
        if self._own is not None:
            return self._own[number]
        return self._ids[self._rows.owner[number]] + self._tails[self._rows.codes[number]]


def write_texts(folder: ExportFolder, name: str, lines: Iterable[str], head: str = "") -> int:
    """Write texts, each with its line end, behind a ``head`` and record the file; return how many."""
    rows = 0
    with folder.path(name).open("w", encoding="utf-8", newline="") as file:
        file.write(head)
        for line in lines:
            file.write(line)
            rows += 1
    folder.record_lines(name, rows, head)
    return rows


@contextmanager
def line_file(folder: ExportFolder, name: str, head: str = ""):
    """Open a file of an export for whole lines and record it when it is finished.

    Yields a function that writes an Arrow array of lines, each with its line end, and returns the lines so far (without
    ``head``).
    """
    rows = 0
    with folder.path(name).open("wb") as file:
        file.write(head.encode())

        def write(lines: pa.StringArray) -> int:
            nonlocal rows
            file.write(buffer_of(lines))
            rows += len(lines)
            return rows

        yield write
    folder.record_lines(name, rows, head)


def buffer_of(lines: pa.StringArray) -> memoryview:
    """Return the bytes of all texts of an array, one after the other, without copying them."""
    if not len(lines):
        return memoryview(b"")
    offsets = np.frombuffer(lines.buffers()[1], dtype=np.int32)
    return memoryview(lines.buffers()[2])[offsets[lines.offset] : offsets[lines.offset + len(lines)]]

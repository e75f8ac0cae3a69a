"""CSV for spreadsheets: ``questions.{split}.csv`` and ``passages.{split}.csv``, UTF-8 with a byte order mark.

Lists are JSON in one cell. A cell that a spreadsheet would take for a formula begins with ``'``
(``quit.common.safe``). A split without questions has no files.
"""

from __future__ import annotations

from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from quit.common.safe import CELL_RULE, json_text, safe_cells
from quit.dataset.dataset import FULLY, Dataset
from quit.evaluate.labels import SPLITS
from quit.export.files import ExportFolder, FormatFacts
from quit.export.formats import Options
from quit.export.lines import Lines, PassageIds

_MARK = b"\xef\xbb\xbf"  # without it Excel takes UTF-8 for another encoding


def write(dataset: Dataset, folder: ExportFolder, options: Options) -> FormatFacts:
    """Write both tables of each split; return rows by table and split, and how many cells were changed."""
    lines = Lines(PassageIds(dataset, escaped=False))
    rows: dict[str, dict[str, int]] = {"questions": {}, "passages": {}}
    changed_cells = 0
    for split in SPLITS:
        if not len(positions := dataset.positions(split)):
            continue
        with _Sheet(folder, f"passages.{split}.csv") as passages, _Sheet(folder, f"questions.{split}.csv") as questions:
            for part in lines.ranges(positions):
                labels = dataset.labels_of(part)
                fully = dataset.rows.take(part).sums(labels == FULLY)
                questions.write(_questions(dataset, part, fully))
                passages.write(_passages(dataset, lines, part, labels))
        rows["questions"][split], rows["passages"][split] = questions.rows, passages.rows
        changed_cells += questions.changed + passages.changed
    return {"rows": rows, "changed_cells": changed_cells, "cell_rule": CELL_RULE}


def _questions(dataset: Dataset, positions: np.ndarray, fully: np.ndarray) -> dict[str, pa.Array]:
    row_indices = pa.array(positions)
    questions, descriptions = (dataset.aligned(name).take(row_indices) for name in ("questions", "descriptions"))
    with_hints = positions if dataset.given is None else positions[:0]
    hints = [[row["hint"] for row in dataset.selected_hints[position]] for position in with_hints]
    most = pc.max(pc.list_value_length(dataset.selected_hints.array)).as_py()
    padded = [[*texts, *[None] * (most - len(texts))] for texts in hints]
    return {
        "id": questions["question_id"],
        "question": questions["question"],
        "answers": pa.array([json_text(dataset.gold_answers_of[position]) for position in positions]),
        "valid_answers": pa.array([json_text(dataset.valid_answers_of[position]) for position in positions]),
        **{f"hint_{index}": pa.array(column, pa.string()) for index, column in enumerate(zip(*padded, strict=True))},
        "type": descriptions["coarse"],
        "difficulty": descriptions["difficulty"],
        "difficulty_bin": descriptions["difficulty_bin"],
        "source": questions["source"],
        "fully_relevant_passages": pa.array(fully),
    }


def _passages(dataset: Dataset, lines: Lines, positions: np.ndarray, labels: np.ndarray) -> dict[str, pa.Array]:
    passages = dataset.rows.take(positions)
    questions = pa.array([dataset.question_of[position] for position in positions])
    return {
        "id": lines.ids.of(positions),
        "question_id": lines.ids.of_questions(positions),
        "question": questions.take(pa.array(passages.owner)),
        "text": lines.texts(positions, str),
        "label": pa.array(labels),
        **(dataset.given_columns(positions) or {"n_hints": pa.array(passages.hints)}),
    }


class _Sheet:
    """One CSV file, written a range of questions at a time."""

    def __init__(self, folder: ExportFolder, name: str) -> None:
        self.folder, self.name, self.rows, self.changed = folder, name, 0, 0
        self.file: BinaryIO = folder.path(name).open("wb")
        self.file.write(_MARK)

    def __enter__(self) -> _Sheet:
        return self

    def write(self, columns: dict[str, pa.Array]) -> None:
        """Write rows; the first ones with a line of heads before them."""
        safe = {}
        for name, column in columns.items():
            safe[name] = safe_cells(column) if pa.types.is_string(column.type) else column
            if safe[name] is not column:
                self.changed += pc.sum(pc.not_equal(safe[name], column)).as_py() or 0
        table = pa.table(safe)
        csv.write_csv(table, self.file, csv.WriteOptions(include_header=not self.rows))
        self.rows += len(table)

    def __exit__(self, kind: object, *error: object) -> None:
        self.file.close()
        if kind is None:
            self.folder.record(self.name, self.rows)

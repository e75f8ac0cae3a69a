"""The rows of each question in a table: lists of small tables, slices of large ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from quit.common.columns import one_array, plain, positions_in, runs
from quit.dataset.files import PagedTable, lists
from quit.errors import InputError
from quit.stages.labelling.passages import PassageRows


@dataclass(frozen=True)
class Lists(Sequence[list[Any]]):
    """The lists of an Arrow array, each made of Python objects only when it is read."""

    array: pa.ListArray

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, position: Any) -> Any:
        return self.array[int(position)].as_py()


def row_lists(table: pa.Table, ids: Sequence[str]) -> pa.ListArray:
    """Return the rows of each question in ``ids``, in the order of the table: per question a list of structs with the
    table's columns, empty where it has none."""
    columns = [plain(column) for column in table.columns]
    rows = pa.StructArray.from_arrays(columns, names=table.column_names)
    return lists(pa.table({"question_id": table["question_id"], "row": rows}), "row", pa.array(ids))


class QuestionRows:
    """Finds the rows of each question in a large table, without copying it.

    ``passages``: of the questions, where the table has a row for each of them; None: any number of rows, at least one.
    Raises ``InputError`` where that is not so, and where a question's rows are not together.
    """

    def __init__(
        self, name: str, table: pa.Table | PagedTable, ids: Sequence[str], passages: PassageRows | None = None
    ) -> None:
        self.name, self.table, self.ids, self._passages = name, table, ids, passages
        question_ids, starts, lengths = runs(table["question_id"])
        bounds = dict(zip(question_ids, zip(starts.tolist(), lengths.tolist())))
        if len(bounds) < len(question_ids):
            raise InputError(f"The rows of a question are not together in the table {name!r}.")
        expected = [0] * len(ids) if passages is None else passages.counts.tolist()
        for question_id, size in zip(ids, expected, strict=True):
            _, count = bounds.get(question_id, (0, 0))
            if count != (size or max(1, count)):
                raise InputError(
                    f"The table {name!r} has {count} rows for the question {question_id!r}, expected "
                    f"{size or 'at least one'}."
                )
        rows = np.array([bounds[question_id] for question_id in ids], dtype=np.int64).reshape(-1, 2)
        self.starts, self.counts = rows.T

    def take(self, positions: np.ndarray) -> pa.Table:
        """Return the rows of some questions (places in ``ids``), question by question."""
        table, rows = self._slice(positions)
        return table if rows is None else table.unify_dictionaries().take(pa.array(rows))

    def column(self, positions: np.ndarray, name: str) -> pa.Array:
        """Return a column of the rows of some questions' passages, question by question.

        Raises ``InputError`` where the rows are not those of the passages, in their order.
        """
        assert self._passages is not None
        table, rows = self._slice(positions)
        codes = positions_in(table["permutation"], self._passages.table.permutation)
        wrong = (codes if rows is None else codes[rows]) != self._passages.codes[self._passages.rows(positions)]
        if wrong.any():
            first = self.ids[np.repeat(positions, self.counts[positions])[wrong][0]]
            raise InputError(f"The rows of question {first!r} in the table {self.name!r} are not in depth-first order.")
        piece = one_array(table[name])
        return piece if rows is None else piece.take(pa.array(rows))

    def _slice(self, positions: np.ndarray) -> tuple[pa.Table, np.ndarray | None]:
        """Return a slice of the table and which of its rows belong to these questions (None: all, in this order)."""
        starts, counts = self.starts[positions], self.counts[positions]
        low, high = int(starts.min()), int((starts + counts).max())
        table, total = self.table.slice(low, high - low), int(counts.sum())
        if total == high - low and bool((np.diff(starts) > 0).all()):
            return table, None
        return table, np.repeat(starts - low - (np.cumsum(counts) - counts), counts) + np.arange(total)

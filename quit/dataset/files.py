"""The tables of a release as Parquet files, of a workspace or frozen, read in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from quit import contracts
from quit.common.columns import plain, positions_in
from quit.common.parquet import ALL, KEYS, NOBODY, ROWS_AT_ONCE, Owner, Questions, joined, opened, pieces
from quit.engine.workspace import Workspace
from quit.errors import InputError
from quit.evaluate.labels import SPLITS
from quit.stages.labelling.answers import Answers
from quit.stages.labelling.passages import PermutationTable, joined_hints, passage_count

TABLES = tuple(name for name, table in contracts.TABLES.items() if table.released)
"""Tables of a release, without those of its readers. All except :data:`HISTORY` hold only questions in ``splits``."""
_BEHIND_PASSAGES = ("splits", "questions", "ranked_hints", "valid_answers", "labels")
HISTORY = ("changes", "rejects")
"""Tables that also hold questions which left the dataset."""
ROWS_A_GROUP = 1 << 17
QUESTIONS_A_CHUNK = 2048
"""Questions whose rows of all tables are in memory together (:meth:`TableFiles.chunks`), where each has QUIT's 325
passages."""
_ENCODED = (*KEYS, "subset", "reader", "producer", "ended")
_OF_DISTINCT = ("question_id", "number", "answer", "answer_key")
PASSAGES = pa.schema(
    [
        ("question_id", pa.string()),
        ("permutation", pa.string()),
        ("question", pa.string()),
        ("text", pa.string()),
        ("label", pa.int8()),
        ("answers", pa.list_(pa.string())),
        ("split", pa.string()),
    ]
)
"""Columns of :meth:`TableFiles.passages`."""


def contract(name: str) -> contracts.TableContract:
    """Return the contract of a release's table: ``answers/<reader>`` has that of ``answers``."""
    return contracts.table(name.partition("/")[0])


def imported_schema(name: str) -> pa.Schema:
    """Return the schema of an imported release's table: what published files do not hold is null."""
    table = contract(name)
    return pa.schema(
        [field.with_nullable(field.name not in table.key) for field in table.schema], table.schema.metadata
    )


def questions_at_once(most: int, questions: int, passages: int) -> int:
    """Return how many questions to take at a time: ``most``, fewer where they have more than QUIT's 325 passages."""
    return max(1, min(most, most * passage_count() * questions // max(1, passages)))


def names_of(readers: Iterable[str]) -> tuple[str, ...]:
    """Return the names of all tables of a release with these readers."""
    return (*TABLES, *(f"{table}/{reader}" for reader in readers for table in ("answers", "distinct_answers")))


@dataclass(frozen=True)
class TableFiles:
    """Table -> its Parquet files, in row order. ``ids``: the questions that count, where the files hold more.

    ``imported``: made from published files, so that every column except a table's key may be null (unknown). ``owner``:
    what is raised where a file cannot be read.
    """

    parts: Mapping[str, Sequence[Path]]
    ids: pa.Array | None = None
    imported: bool = False
    owner: Owner = NOBODY

    @property
    def readers(self) -> list[str]:
        """Names of the readers that have answers."""
        return [name.partition("/")[2] for name in self.parts if name.startswith("answers/")]

    def read(self, name: str, columns: Sequence[str] | None = None, *, encoded: bool = False) -> pa.Table:
        """Return a table, or some of its columns; ``encoded``: with dictionaries of texts that many rows share.

        Raises its owner's error for a file that cannot be read.
        """
        tables = [*self.batches(name, columns, encoded=encoded, size=ROWS_AT_ONCE)]
        return joined(tables, self.schema(name), columns)

    def schema(self, name: str) -> pa.Schema:
        """Return a table's Arrow schema."""
        return imported_schema(name) if self.imported else contract(name).schema

    def answers(self, reader: str) -> Answers:
        """Return a reader's answers as pages: rows (question_id, permutation, number, asked) and distinct replies. They
        may hold other questions than ours, so that ``index`` and ``counts`` are not defined.

        Raises ``InputError`` as :meth:`read` does.
        """
        rows: Any = self.paged(f"answers/{reader}", [*KEYS, "number", "asked"])
        distinct: Any = self.paged(f"distinct_answers/{reader}", _OF_DISTINCT, kept=2 * ROWS_A_GROUP)
        return Answers(rows, distinct)

    def paged(self, name: str, columns: Sequence[str], kept: int = ROWS_AT_ONCE) -> PagedTable:
        """Return some columns of a table, with question ids and permutations as dictionaries, to be read row group by
        row group. At most ``kept`` rows, or two groups, stay in memory. It may hold other questions than ours. Raises
        ``InputError`` as :meth:`read` does."""
        pages, schema = [], self.schema(name)
        for path in self.parts.get(name, ()):
            metadata = self.metadata(path)
            groups = self._questions(name).groups(metadata)
            pages += [(path, group, metadata.row_group(group).num_rows) for group in groups]
        return PagedTable(pages, pa.schema([schema.field(column) for column in columns]), kept, self.owner)

    def batches(
        self,
        name: str,
        columns: Sequence[str] | None = None,
        *,
        encoded: bool = True,
        size: int | None = None,
    ) -> Iterator[pa.Table]:
        """Yield a table, or some of its columns, in pieces of at most ``size`` rows (by default
        :data:`ROWS_A_GROUP`); ``encoded`` as in :meth:`read`.

        A table without rows yields nothing. Raises its owner's error for a file that cannot be read.
        """
        names, encoded_names = columns or self.schema(name).names, _ENCODED if encoded else ()
        for path in self.parts.get(name, ()):
            yield from pieces(path, names, self._questions(name), encoded_names, size or ROWS_A_GROUP, self.owner)

    def chunks(self, size: int = QUESTIONS_A_CHUNK) -> Iterator[TableFiles]:
        """Yield these files for ``size`` questions of 325 passages at a time, in the order of ``splits`` (once where it
        is empty). Of tables that are sorted by question, as ``splits`` is, only the row groups with these questions are
        read."""
        ids = plain(self.read("splits", ["question_id"])["question_id"])
        size = questions_at_once(size, len(ids), self.rows("passages"))
        for first in range(0, len(ids) or 1, size):
            yield replace(self, ids=ids.slice(first, size))

    def passages(self, split: str | None = None) -> pa.RecordBatchReader:
        """Return the labelled passages (of train, dev or test) with their texts: columns of ``PASSAGES``, one row per
        passage, in the order of the table ``labels``. ``answers``: the question's valid answers.

        At most ``ROWS_A_GROUP`` passages are in memory at a time, so 2.4 million need no more than 100,000 do. Raises
        ``InputError`` for an unknown split, a table that is not there or a file that cannot be read, also while
        batches are read.
        """
        if missing := [name for name in _BEHIND_PASSAGES if name not in self.parts]:
            raise InputError(f"There are no labelled passages: the table {missing[0]!r} is not there. Run: quit build")
        splits = self.read("splits", ["question_id", "split"])
        if split is not None:
            if split not in SPLITS:
                raise InputError(f"Unknown split {split!r}: expected {', '.join(SPLITS[:-1])} or {SPLITS[-1]}.")
            splits = splits.filter(pc.equal(splits["split"], split))
        ids = plain(splits["question_id"])
        rows = replace(self, ids=ids).batches("labels", ["question_id", "permutation", "label"])
        questions = self.read("questions", ["question_id", "question"])
        text_of = plain(questions["question"]).take(pc.index_in(ids, plain(questions["question_id"])))
        ranked = self.read("ranked_hints", ["question_id", "rank", "hint", "selected"])
        ranked = ranked.filter(ranked["selected"]).sort_by("rank")
        hints, answers = lists(ranked, "hint", ids), lists(self.read("valid_answers"), "answer", ids)

        def batches() -> Iterator[pa.RecordBatch]:
            for table in rows:
                owner = positions_in(table["question_id"], ids)
                permutation, at = plain(table["permutation"]), pa.array(owner)
                orders = PermutationTable.of(permutation.unique().to_pylist())
                texts = joined_hints(hints, orders, owner, positions_in(table["permutation"], orders.permutation))
                label, split_of = table["label"].combine_chunks(), plain(splits["split"]).take(at)
                columns = [ids.take(at), permutation, text_of.take(at), texts, label, answers.take(at), split_of]
                yield pa.record_batch(columns, PASSAGES)

        return pa.RecordBatchReader.from_batches(PASSAGES, batches())

    def rows(self, name: str) -> int:
        """Return the number of rows in a table's files."""
        return sum(self.metadata(path).num_rows for path in self.parts.get(name, ()))

    def metadata(self, path: Path) -> pq.FileMetaData:
        """Return what a file says of itself. Raises its owner's error for a file that cannot be read."""
        with opened(path, owner=self.owner) as file:
            return file.metadata

    def _questions(self, name: str) -> Questions:
        return ALL if self.ids is None or name in HISTORY else self._of_ids

    @cached_property
    def _of_ids(self) -> Questions:
        return Questions.of(self.ids)


class PagedTable:
    """Some columns of a table in files: as an Arrow table, except that slices are read when they are asked for.

    ``pages``: file, row group and its number of rows, in row order.
    """

    def __init__(self, pages: Sequence[tuple[Path, int, int]], schema: pa.Schema, kept: int, owner: Owner) -> None:
        self._pages, self.schema, self._owner = pages, schema, owner
        self._ends = np.cumsum([rows for _, _, rows in pages], dtype=np.int64)
        largest = max((rows for _, _, rows in pages), default=1)
        names = tuple(schema.names)
        self._cached = lru_cache(max(2, kept // max(1, largest)))(partial(self._page, columns=names))

    @property
    def column_names(self) -> list[str]:
        """Names of the columns."""
        return self.schema.names

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return int(self._ends[-1]) if len(self._ends) else 0

    def __len__(self) -> int:
        return self.num_rows

    def __iter__(self) -> Iterator[pa.Table]:
        return (self._page(path, group, self.column_names) for path, group, _ in self._pages)

    def __getitem__(self, column: str) -> pa.ChunkedArray:
        """Return a whole column."""
        return self.select([column])[column]

    column = __getitem__

    def select(self, columns: Sequence[str]) -> pa.Table:
        """Return whole columns."""
        empty = pa.schema([self.schema.field(column) for column in columns]).empty_table()
        pieces = [self._page(path, group, columns) for path, group, _ in self._pages]
        return pa.concat_tables(pieces) if pieces else empty

    def slice(self, start: int, length: int) -> pa.Table:
        """Return rows. Raises its owner's error for a file that cannot be read."""
        first, last = np.searchsorted(self._ends, [start, start + length - 1], side="right").tolist()
        pages = self._pages[first : last + 1]
        rows = pa.concat_tables([self._cached(path, group) for path, group, _ in pages])
        return rows.slice(start - int(self._ends[first]) + pages[0][2], length)

    def _page(self, path: Path, group: int, columns: Sequence[str]) -> pa.Table:
        with opened(path, [key for key in KEYS if key in columns], self._owner) as file:
            return file.read_row_group(group, [*columns])


def lists(table: pa.Table, column: str, ids: pa.Array) -> pa.ListArray:
    """Return the values of each question in ``ids``, in the order of the table."""
    owner = positions_in(table["question_id"], ids)
    rows = np.argsort(owner, kind="stable")[np.count_nonzero(owner < 0) :]
    ends = np.cumsum(np.bincount(owner[rows], minlength=len(ids)))
    values = plain(table[column]).take(pa.array(rows))
    return pa.ListArray.from_arrays(pa.array(np.concatenate([[0], ends]), pa.int32()), values)


def aligned(name: str, table: pa.Table, ids: Sequence[str]) -> pa.Table:
    """Return one row of a table per question, in the order of ``ids``. Raises ``InputError`` for one without a row."""
    rows = pc.index_in(pa.array(ids), plain(table["question_id"]))
    if rows.null_count:
        missing = ids[rows.is_null().index(True).as_py()]
        raise InputError(f"The table {name!r} has no row for the question {missing!r}.")
    return table.take(rows)


def current_files(workspace: Workspace, readers: Iterable[str] | None = None) -> TableFiles:
    """Return the current tables of a workspace, labels with applied reviews; those of stages without a finished part
    are left out. ``readers``: of all, or of these only.

    Raises :class:`WorkspaceError` for a file that is missing or was changed.
    """
    current = workspace.current()
    if readers is None:
        readers = [run.partition(":")[2] for run in current if run.startswith("read:")]
    parts = {}
    for name in names_of(readers):
        table, _, reader = name.partition("/")
        if any(table in manifest["tables"] for _, manifest in current.values()):
            parts[name] = workspace.part_files(table, runs=[f"read:{reader}"] if reader else None)
    return TableFiles(parts, plain(workspace.read("splits")["question_id"]), owner=workspace.owner)

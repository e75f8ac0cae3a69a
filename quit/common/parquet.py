"""Parquet files, whatever holds them: a writer, and reading of some columns and some questions, a piece at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from quit.common.columns import is_in, plain
from quit.common.faults import fault_of_the_machine
from quit.common.ranges import WHOLE, Range
from quit.errors import InputError, QuitError

UNREADABLE = (OSError, pa.ArrowException, ValueError, OverflowError)
"""Errors of reading a damaged file; the last two for texts that are not UTF-8 and dates that Python does not have."""
KEYS = ("question_id", "permutation")
"""Text columns with few distinct values in many rows."""
ROWS_AT_ONCE = 1 << 20


class Owner(NamedTuple):
    """Whose a file is: what is raised where it cannot be read, and what helps then."""

    error: type[QuitError] = InputError
    advice: str = ""


NOBODY = Owner()


def parquet_writer(path: Path, schema: pa.Schema, **options: Any) -> pq.ParquetWriter:
    """Return a writer that packs by Zstandard. Arrow takes the start of a relative path such as ``a:b/c`` for a scheme,
    so the path is absolute."""
    return pq.ParquetWriter(path.absolute(), schema, compression="zstd", **options)


def write_parquet(path: Path, table: pa.Table) -> None:
    """Write a table as one file."""
    with parquet_writer(path, table.schema) as file:
        file.write_table(table)


@contextmanager
def opened(
    path: Path, encoded: Sequence[str] = (), owner: Owner = NOBODY, *, check_pages: bool = False
) -> Iterator[pq.ParquetFile]:
    """Open a file; columns that are ``encoded`` become dictionaries. ``check_pages``: each page has its checksum.

    Raises the error of its ``owner`` where the file cannot be read, also in the block.
    """
    try:
        with pq.ParquetFile(path.absolute(), read_dictionary=encoded, page_checksum_verification=check_pages) as file:
            yield file
    except UNREADABLE as cause:
        fault = owner.error(f"{path} cannot be read: {' '.join(str(cause).split())}. {owner.advice}".rstrip())
        raise fault_of_the_machine(cause) or fault from cause


@dataclass(frozen=True)
class Questions:
    """Some questions: all in a range, or only ``ids`` of these."""

    shard: Range = WHOLE
    ids: pa.Array | None = None

    @classmethod
    def of(cls, ids: pa.Array) -> Questions:
        """Return these questions, with the range that they span."""
        ends = pc.min_max(ids).as_py()
        return cls(Range(0, 1, ends["min"] or "", f"{ends['max'] or ''}\0"), ids)

    @property
    def unlimited(self) -> bool:
        """Whether they are all questions there are."""
        return self.shard == WHOLE and self.ids is None

    def of_rows(self, rows: pa.Table) -> pa.Table:
        """Return the rows of these questions."""
        if self.unlimited:
            return rows
        names = plain(rows["question_id"].unique())
        ids = names.filter(pc.greater_equal(names, self.shard.first or ""))
        ids = ids if self.shard.end is None else ids.filter(pc.less(ids, self.shard.end))
        ids = ids if self.ids is None else ids.filter(pc.is_in(ids, self.ids))
        return rows if len(ids) == len(names) else rows.filter(is_in(rows["question_id"], ids))

    def groups(self, metadata: pq.FileMetaData) -> list[int]:
        """Return the row groups of a file that may hold rows of these questions."""
        groups = range(metadata.num_row_groups)
        if self.unlimited:
            return [*groups]
        column = metadata.schema.to_arrow_schema().names.index("question_id")
        facts = [metadata.row_group(group).column(column).statistics for group in groups]
        return [
            group
            for group, ends in zip(groups, facts, strict=True)
            if ends is None or not ends.has_min_max or not self.shard.misses(ends.min, ends.max)
        ]


ALL = Questions()


def pieces(
    path: Path,
    columns: Sequence[str],
    questions: Questions = ALL,
    encoded: Sequence[str] = KEYS,
    size: int = ROWS_AT_ONCE,
    owner: Owner = NOBODY,
) -> Iterator[pa.Table]:
    """Yield the rows of ``questions`` in a file, at most ``size`` at a time, and none of no rows.

    ``encoded``: columns that become dictionaries, if they are read. Raises as :func:`opened` does.
    """
    read = [*columns] if questions.unlimited else [*dict.fromkeys((*columns, "question_id"))]
    with opened(path, [name for name in encoded if name in read], owner) as file:
        for batch in file.iter_batches(size, questions.groups(file.metadata), read):
            if len(rows := questions.of_rows(pa.Table.from_batches([batch]))):
                yield rows.select([*columns])


def joined(tables: Sequence[pa.Table], schema: pa.Schema, columns: Sequence[str] | None = None) -> pa.Table:
    """Return pieces of a table, or of some ``columns`` of it, as one; its ``schema`` is that of none."""
    if tables:
        return pa.concat_tables(tables).unify_dictionaries()
    return (schema if columns is None else pa.schema([schema.field(name) for name in columns])).empty_table()


def rows_of(path: Path, columns: Sequence[str] | None = None, owner: Owner = NOBODY) -> pa.Table:
    """Return the rows of a file. Raises as :func:`opened` does."""
    with opened(path, owner=owner) as file:
        return file.read(None if columns is None else [*columns])

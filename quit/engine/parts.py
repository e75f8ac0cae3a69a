"""Parquet parts: written with a checksum per page, described in a manifest, compared with that before their bytes are
trusted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from quit import contracts
from quit.common.columns import plain, rows_hash
from quit.common.files import file_checksum, file_mark, is_settled, known_checksum
from quit.common.ranges import WHOLE, Range
from quit.errors import WorkspaceError, fault_of_the_machine

UNREADABLE = (OSError, pa.ArrowException, ValueError)
"""Errors of reading a damaged Parquet file; the last one for names and texts that are not UTF-8."""
_HASH = b"quit.rows"
_WHOLE: set[tuple[Any, ...]] = set()  # marks of the parts of logs whose rows were compared with their hash
_GROUP = 1 << 15  # rows; 64 questions have 20,800 passages
_ROWS = 1 << 17  # read at a time where only their checksums are of interest


def part_name(shard: Range) -> str:
    """Return the name of a shard's part of a table."""
    return f"part-{shard.index:05d}-of-{shard.count:05d}.parquet"


def write_part(target: Path, rows: pa.Table, schema: pa.Schema) -> None:
    """Write rows as ``schema`` has them, decoded a row group at a time; every page carries a checksum (CRC-32), so that
    damage is found where no manifest knows the file's."""
    with pq.ParquetWriter(target, schema, compression="zstd", write_page_checksum=True) as writer:
        for first in range(0, len(rows) or 1, _GROUP):
            writer.write_table(rows.slice(first, _GROUP).cast(schema), _GROUP)


def describe(path: Path, table: str) -> dict[str, Any]:
    """Return the manifest entry of a part: ``file``, ``rows``, ``bytes``, ``sha256``, and ``first`` and ``last``
    question.

    Raises :class:`WorkspaceError` for one that cannot be read.
    """
    try:
        with pq.ParquetFile(path) as parquet:
            facts: dict[str, Any] = {"file": path.name, "rows": parquet.metadata.num_rows}
            facts["bytes"] = path.stat().st_size
            has_questions = "question_id" in parquet.schema_arrow.names and table != "rejects"
        if has_questions:
            # No order is assumed: whatever a stage's row order, these bound the part's questions.
            with pq.ParquetFile(path, read_dictionary=["question_id"]) as parquet:
                bounds = pc.min_max(plain(parquet.read(["question_id"]).column(0).unique()))
            facts |= {"first": bounds["min"].as_py(), "last": bounds["max"].as_py()}
    except UNREADABLE as error:
        raise WorkspaceError(
            f"{path} cannot be read: {error}. Run the same build again: that writes it again."
        ) from error
    return {**facts, "sha256": file_checksum(path)}


def damage(path: Path, part: Mapping[str, Any] | None) -> str | None:
    """Return what is wrong with a part, None where nothing is.

    ``part``: what its manifest says of it. Where that is None (the stage is not finished), all pages are read and
    compared with their own checksums.
    """
    try:
        if part is None:
            with pq.ParquetFile(path, page_checksum_verification=True) as parquet:
                for _ in parquet.iter_batches(_ROWS):
                    pass
            return None
        same = path.stat().st_size == part["bytes"] and known_checksum(path) == part["sha256"]
        return None if same else "was altered: it has not the checksum of its manifest"
    except FileNotFoundError:
        return "is missing"
    except UNREADABLE as error:
        return f"cannot be read ({' '.join(str(error).split())})"


KEYS = ("question_id", "permutation")
"""Text columns with few distinct values in many rows."""


def question_bounds(metadata: pq.FileMetaData) -> list[tuple[str, str] | None]:
    """Return the first and last question of each row group of a file; None: the file does not say."""
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    names = metadata.schema.to_arrow_schema().names
    if "question_id" not in names:
        return [None] * len(groups)
    statistics = [group.column(names.index("question_id")).statistics for group in groups]
    return [(each.min, each.max) if each is not None and each.has_min_max else None for each in statistics]


def read_part(path: Path, columns: Sequence[str] | None = None, shard: Range = WHOLE) -> pa.Table:
    """Return the rows of a part. ``columns``: only these, with :data:`KEYS` dictionary-encoded. ``shard``: only row
    groups that may hold its questions; rows of other questions may be among them.

    Raises :class:`WorkspaceError` for one that cannot be read.
    """
    try:
        with pq.ParquetFile(path, read_dictionary=[key for key in KEYS if key in (columns or ())]) as file:
            if shard == WHOLE or file.num_row_groups < 2:
                return file.read(columns)
            bounds = question_bounds(file.metadata)
            groups = [group for group, ends in enumerate(bounds) if ends is None or not shard.misses(*ends)]
            return file.read_row_groups(groups, columns)
    except UNREADABLE as error:
        fault = WorkspaceError(f"{path} cannot be read: {error}. Build again to write it again.")
        raise fault_of_the_machine(error) or fault from error


def write_log_part(target: Path, rows: pa.Table) -> None:
    """Write a part of a log. No manifest will know its checksum, so it carries a hash of its rows."""
    rows = rows.replace_schema_metadata({_HASH: _hash(rows)})
    write_part(target, rows, rows.schema)


def read_log_part(name: str, path: Path) -> pa.Table:
    """Return one part of a log.

    Raises :class:`WorkspaceError` for one whose rows are not those that were written, or a newer program's.
    """
    try:
        mark = file_mark(path)
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            rows = file.read()
        schema = contracts.table(name).schema
        if unknown := {*rows.column_names} - {*schema.names}:
            raise ValueError(f"{name} has no column {min(unknown)}: a newer program wrote this")
        if mark not in _WHOLE:
            if (rows.schema.metadata or {}).get(_HASH) != _hash(rows):
                raise ValueError("its rows are not those that were written")
            if is_settled(mark) and file_mark(path) == mark:
                _WHOLE.add(mark)
        return rows.cast(schema)
    except UNREADABLE as error:
        fault = WorkspaceError(
            f"{path} cannot be read: {' '.join(str(error).split())}. What people wrote cannot be rebuilt: take it "
            "from a copy of the workspace."
        )
        raise fault_of_the_machine(error) or fault from error


def _hash(rows: pa.Table) -> bytes:
    return rows_hash(rows, lambda piece: [[column.to_pylist() for column in piece.columns]]).encode()


def log_number(path: Path) -> int:
    """Return the number of a log's part. Raises :class:`WorkspaceError` for a name that no log has."""
    number = path.stem.removeprefix("part-")
    if not (number.isascii() and number.isdigit()):
        raise WorkspaceError(f"{path} is not part of a log: its name has no number. Move it elsewhere.")
    return int(number)


def joined(name: str, pieces: Sequence[pa.Table], columns: Sequence[str] | None = None) -> pa.Table:
    """Return parts of a table, or some columns of theirs, as one table (empty where there are none)."""
    schema = contracts.table(name).schema
    if columns is not None:
        if not pieces:
            return pa.schema([schema.field(column) for column in columns]).empty_table()
        return pa.concat_tables([piece.select(columns) for piece in pieces]).unify_dictionaries()
    return pa.concat_tables(pieces).cast(schema) if pieces else schema.empty_table()

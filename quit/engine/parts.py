"""Parquet parts: written with a checksum per page, described in a manifest, compared with that before their bytes are
trusted."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NotRequired, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from typing_extensions import TypedDict

from quit import contracts
from quit.common.checksums import file_checksum, file_mark, known_checksum
from quit.common.columns import plain, rows_hash
from quit.common.manifests import FileState
from quit.common.parquet import UNREADABLE, Owner, opened, parquet_writer
from quit.common.ranges import Range
from quit.common.state_files import StateFile
from quit.errors import WorkspaceError

_HASH = b"quit.rows"
_WHOLE: set[tuple[Any, ...]] = set()  # marks of the parts of logs whose rows were compared with their hash
_GROUP = 1 << 15  # rows; 64 questions have 20,800 passages
_ROWS = 1 << 17  # read at a time where only their checksums are of interest
_NEW = Owner(WorkspaceError, "Run the same build again: that writes it again.")
_OF_PEOPLE = Owner(WorkspaceError, "What people wrote cannot be rebuilt: take it from a copy of the workspace.")


class Part(FileState):
    """A Parquet part of a table; ``first`` and ``last`` bound its questions."""

    file: str
    rows: int
    first: NotRequired[str | None]
    last: NotRequired[str | None]


class PartedTable(TypedDict):
    """A table of a stage run."""

    rows: int
    parts: list[Part]


class Manifest(TypedDict):
    """A complete stage run: its tables, and what they were made from. ``inputs``: earlier stage run -> hash of its
    tables; ``sources``: of the stage that reads them."""

    tables: dict[str, PartedTable]
    supersedes: NotRequired[list[str]]
    inputs: NotRequired[dict[str, str]]
    models: NotRequired[list[str]]
    settings: NotRequired[dict[str, Any]]
    sources: NotRequired[list[dict[str, str]]]


MANIFEST: StateFile[Manifest] = StateFile("manifest.json", Manifest)


def part_name(shard: Range) -> str:
    """Return the name of a shard's part of a table."""
    return f"part-{shard.index:05d}-of-{shard.count:05d}.parquet"


def write_part(target: Path, rows: pa.Table, schema: pa.Schema) -> None:
    """Write rows as ``schema`` has them, decoded a row group at a time; every page carries a checksum (CRC-32), so that
    damage is found where no manifest knows the file's."""
    with parquet_writer(target, schema, write_page_checksum=True) as file:
        for first in range(0, len(rows) or 1, _GROUP):
            file.write_table(rows.slice(first, _GROUP).cast(schema), _GROUP)


def describe(path: Path, table: str) -> Part:
    """Return what a manifest says of a part. Raises :class:`WorkspaceError` for one that cannot be read."""
    with opened(path, ["question_id"], _NEW) as parquet:
        part: dict[str, Any] = {"file": path.name, "rows": parquet.metadata.num_rows, "bytes": path.stat().st_size}
        if "question_id" in parquet.schema_arrow.names and table != "rejects":
            # No order is assumed: whatever a stage's row order, these bound the part's questions.
            bounds = pc.min_max(plain(parquet.read(["question_id"]).column(0).unique())).as_py()
            part |= {"first": bounds["min"], "last": bounds["max"]}
    return cast(Part, {**part, "sha256": file_checksum(path)})


def fault_of(path: Path, part: FileState | None) -> str | None:
    """Return what is wrong with a part, None where nothing is.

    ``part``: what its manifest says of it. Where that is None (the stage is not finished), all pages are read and
    compared with their own checksums.
    """
    try:
        if part is None:
            with pq.ParquetFile(path.absolute(), page_checksum_verification=True) as parquet:
                for _ in parquet.iter_batches(_ROWS):
                    pass
            return None
        same = path.stat().st_size == part["bytes"] and known_checksum(path) == part["sha256"]
        return None if same else "was changed: its checksum differs from its manifest's"
    except FileNotFoundError:
        return "is missing"
    except UNREADABLE as error:
        return f"cannot be read ({' '.join(str(error).split())})"


def write_log_part(target: Path, rows: pa.Table) -> None:
    """Write a part of a log. No manifest will know its checksum, so it carries a hash of its rows."""
    rows = rows.replace_schema_metadata({_HASH: _hash(rows)})
    write_part(target, rows, rows.schema)


def read_log_part(name: str, path: Path) -> pa.Table:
    """Return one part of a log.

    Raises :class:`WorkspaceError` for one whose rows are not those that were written, or a newer program's.
    """
    with opened(path, (), _OF_PEOPLE, check_pages=True) as file:
        mark = file_mark(path)
        rows = file.read()
        schema = contracts.table(name).schema
        if unknown := {*rows.column_names} - {*schema.names}:
            raise ValueError(f"{name} has no column {min(unknown)}: a newer program wrote this")
        if mark not in _WHOLE:
            if (rows.schema.metadata or {}).get(_HASH) != _hash(rows):
                raise ValueError("its rows are not those that were written")
            if mark.holds():
                _WHOLE.add(mark)
        return rows.cast(schema)


def _hash(rows: pa.Table) -> bytes:
    return rows_hash(rows, lambda piece: [[column.to_pylist() for column in piece.columns]]).encode()


def log_number(path: Path) -> int:
    """Return the number of a log's part. Raises :class:`WorkspaceError` for a name that no log has."""
    number = path.stem.removeprefix("part-")
    if not (number.isascii() and number.isdigit()):
        raise WorkspaceError(f"{path} is not part of a log: its name has no number. Move it elsewhere.")
    return int(number)

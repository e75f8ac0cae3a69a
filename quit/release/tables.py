"""The tables of a release as Parquet files, of a workspace or frozen: read in bounded memory, written with the same
bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import schemas
from quit.engine.pipeline import Pipeline
from quit.engine.workspace import Workspace
from quit.errors import InputError
from quit.export.workspace import check_finished

TABLES = (
    "splits",
    "questions",
    "hints",
    "ranked_hints",
    "descriptions",
    "passages",
    "labels",
    "valid_answers",
    "verdicts",
    "second_verdicts",
    "changes",
    "rejects",
)
"""Tables of a release beside ``answers/<reader>``. All but the last two hold only questions that are in ``splits``."""
HISTORY = ("changes", "rejects")
ROWS_A_GROUP = 1 << 17


def contract(name: str) -> schemas.Table:
    """Return the contract of a release's table: ``answers/<reader>`` has that of ``answers``."""
    return schemas.table(name.partition("/")[0])


@dataclass(frozen=True)
class TableFiles:
    """Table -> its Parquet files, in row order. ``ids``: the questions that count, where the files hold more."""

    parts: Mapping[str, Sequence[Path]]
    ids: pa.Array | None = None

    @property
    def readers(self) -> list[str]:
        """Names of the readers that have answers."""
        return [name.partition("/")[2] for name in self.parts if name.startswith("answers/")]

    def read(self, name: str, columns: Sequence[str] | None = None, dictionary: Sequence[str] = ()) -> pa.Table:
        """Return a table, or some of its columns; those in ``dictionary`` stay dictionary-encoded.

        Raises ``InputError`` for a file that cannot be read.
        """
        schema = contract(name).schema
        wanted = list(columns or schema.names)
        pieces = []
        for path in self.parts.get(name, ()):
            read = set(wanted) | ({"question_id"} if self._filters(name) else set())
            try:
                rows = pq.read_table(
                    path, columns=sorted(read), read_dictionary=[c for c in dictionary if c in read], partitioning=None
                )
            except (OSError, pa.ArrowException) as error:
                raise InputError(f"{path} cannot be read: {error}") from error
            pieces.append(self._ours(name, rows).select(wanted))
        return pa.concat_tables(pieces) if pieces else pa.schema([schema.field(c) for c in wanted]).empty_table()

    def batches(
        self, name: str, columns: Sequence[str] | None = None, dictionary: Sequence[str] = ()
    ) -> Iterator[pa.Table]:
        """Yield a table, or some of its columns, in pieces of bounded size; those in ``dictionary`` stay
        dictionary-encoded.

        A table without rows yields nothing. Raises ``InputError`` for a file that cannot be read.
        """
        wanted = list(columns or contract(name).schema.names)
        read = wanted if not self._filters(name) or "question_id" in wanted else [*wanted, "question_id"]
        for path in self.parts.get(name, ()):
            try:
                with pq.ParquetFile(path, read_dictionary=list(dictionary)) as file:
                    for batch in file.iter_batches(ROWS_A_GROUP, columns=read):
                        rows = self._ours(name, pa.Table.from_batches([batch])).select(wanted)
                        if len(rows):
                            yield rows
            except (OSError, pa.ArrowException) as error:
                raise InputError(f"{path} cannot be read: {error}") from error

    def sql(self, name: str) -> str:
        """Return the table as DuckDB reads it (all rows of its files), for a FROM clause."""
        listed = ", ".join("'" + str(path).replace("'", "''") + "'" for path in self.parts[name])
        return f"read_parquet([{listed}])"

    def rows(self, name: str) -> int:
        """Return the number of rows in a table's files."""
        return sum(pq.read_metadata(path).num_rows for path in self.parts.get(name, ()))

    def _filters(self, name: str) -> bool:
        return self.ids is not None and name not in HISTORY

    def _ours(self, name: str, rows: pa.Table) -> pa.Table:
        if not self._filters(name):
            return rows
        keep = []
        for chunk in rows["question_id"].chunks:
            encoded = chunk if pa.types.is_dictionary(chunk.type) else chunk.dictionary_encode()
            keep.append(pc.is_in(encoded.dictionary, self.ids).take(encoded.indices))
        return rows.filter(pa.chunked_array(keep, pa.bool_()))


def workspace_tables(workspace: Workspace, pipeline: Pipeline) -> TableFiles:
    """Return the current tables of a finished build, labels with applied reviews.

    Raises :class:`WorkspaceError` when a stage is not finished.
    """
    check_finished(workspace, pipeline)
    parts: dict[str, list[Path]] = {name: [path for path, _ in workspace.part_files(name)] for name in TABLES}
    for reader in pipeline.settings.readers:
        files = workspace.part_files("answers", runs=[f"read:{reader.name}"])
        parts[f"answers/{reader.name}"] = [path for path, _ in files]
    return TableFiles(parts, workspace.read("splits")["question_id"].combine_chunks())


def write_table(target: Path, name: str, pieces: Iterator[pa.Table]) -> int:
    """Write a table and return its number of rows. The bytes depend on the rows alone, not on how they come in
    pieces."""
    schema = contract(name).schema
    total = 0
    with pq.ParquetWriter(target, schema, compression="zstd", store_schema=True) as writer:
        held: list[pa.Table] = []
        count = 0
        for piece in pieces:
            held.append(piece.cast(schema))
            count += len(piece)
            while count >= ROWS_A_GROUP:
                whole = pa.concat_tables(held)
                total += _write_group(writer, whole.slice(0, ROWS_A_GROUP))
                held, count = [whole.slice(ROWS_A_GROUP)], count - ROWS_A_GROUP
        if count:
            total += _write_group(writer, pa.concat_tables(held))
    return total


def _write_group(writer: Any, rows: pa.Table) -> int:
    writer.write_table(rows.combine_chunks(), row_group_size=len(rows))
    return len(rows)

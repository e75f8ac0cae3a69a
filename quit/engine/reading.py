"""Reading tables in parts, whoever holds the parts: a workspace or a release."""

from __future__ import annotations

import glob
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from quit import contracts
from quit.common.files import read_json
from quit.common.parquet import ALL, KEYS, Owner, Questions, joined, pieces
from quit.common.ranges import WHOLE, Range
from quit.common.rows import cursor
from quit.engine.last_build import Build
from quit.engine.parts import Manifest, fault_of, read_log_part
from quit.errors import InputError

if TYPE_CHECKING:
    import duckdb

OF_RELEASE = Owner(InputError, "Take it from a copy of the release.")


class CurrentRun(NamedTuple):
    """A stage run whose tables are current: their folder, and what its manifest says."""

    folder: Path
    manifest: Manifest


CurrentRuns = Mapping[str, CurrentRun]
"""The current tables by stage run, in pipeline order."""


class TableReader(ABC):
    """Reads the current tables below ``path``."""

    path: Path

    @property
    @abstractmethod
    def state(self) -> dict[str, str]:
        """Stage run to the fingerprint of its current tables, in pipeline order: readers are in profile order."""

    @property
    @abstractmethod
    def owner(self) -> Owner:
        """What is raised where a file of its tables cannot be read."""

    @property
    def versions(self) -> dict[str, str]:
        """Stage run to the hash of its current tables: a model that is asked again gives other ones under the same
        fingerprint. Empty where nothing changes, as in a release."""
        return {}

    @property
    def build(self) -> Build | None:
        """What the last build took, or None."""
        return None

    def current(self, runs: Sequence[str] | None = None) -> CurrentRuns:
        """Return the current tables; nothing where there are no stage runs."""
        return {}

    @abstractmethod
    def part_files(
        self, name: str, shard: Range = WHOLE, runs: Sequence[str] | None = None, current: CurrentRuns | None = None
    ) -> list[Path]:
        """Return the files of a table that may hold rows of ``shard``.

        ``runs``: only of these stage runs. ``current``: what :meth:`current` returns, for callers that ask for several
        tables.
        """

    @property
    @abstractmethod
    def judges(self) -> Path:
        """Folder of other judges' verdicts (``quit release rejudge``), which lie beside the tables."""

    @property
    @abstractmethod
    def judged(self) -> str:
        """Hash of the answers that are judged: verdicts beside the tables are rows of ``second_verdicts`` if they are
        on these."""

    def all_files(
        self, name: str, shard: Range = WHOLE, runs: Sequence[str] | None = None, current: CurrentRuns | None = None
    ) -> list[Path]:
        """Return what :meth:`part_files` does and, of ``second_verdicts``, those that lie beside. Raises ``InputError``
        for one of these that was changed."""
        files = self.part_files(name, shard, runs, current)
        for path in sorted(self.judges.glob("*/manifest.json")) if name == "second_verdicts" and not runs else ():
            manifest = read_json(path) or {}
            if manifest.get("content_id") == self.judged:
                file = path.with_name(manifest["file"]["file"])
                if fault := fault_of(file, manifest["file"]):
                    raise InputError(f"{file} {fault}. Remove its folder and judge again: no reply is lost.")
                files.append(file)
        return files

    def schema(self, name: str) -> pa.Schema:
        """Return a table's Arrow schema."""
        return contracts.table(name).schema

    def read(
        self,
        name: str,
        shard: Range = WHOLE,
        runs: Sequence[str] | None = None,
        columns: Sequence[str] | None = None,
        question_ids: Sequence[str] | None = None,
    ) -> pa.Table:
        """Return the current rows of a table: all, one shard's or those of a few questions (empty if no stage has made
        any). Of rejects always all.

        ``columns``: only these, with question ids and permutations dictionary-encoded.
        """
        questions = Questions(shard) if question_ids is None else Questions.of(pa.array(question_ids, pa.string()))
        questions = ALL if name == "rejects" else questions
        schema, paths = self.schema(name), self.all_files(name, questions.shard, runs)
        if contracts.table(name).log:
            tables = [questions.of_rows(read_log_part(name, path)) for path in paths]
        else:
            read, keys = (columns, KEYS) if columns else (schema.names, ())
            tables = [rows for path in paths for rows in pieces(path, read, questions, keys, owner=self.owner)]
        rows = joined(tables, schema, columns)
        return rows.select([*columns]) if columns else rows.cast(schema)

    def connect(
        self,
        question_ids: Sequence[str] | None = None,
        tables: Sequence[str] | None = None,
        connection: duckdb.DuckDBPyConnection | None = None,
    ) -> duckdb.DuckDBPyConnection:
        """Return a connection to the process's DuckDB, or the given one, with a view per table over the current
        Parquet files.

        ``question_ids``: open only the parts that may hold these questions, and all rejects and logs.
        ``tables``: only these.
        """
        of_many, current = connection is None, self.current()
        connection, view = connection or cursor(), "TEMP VIEW" if of_many else "VIEW"

        def put(name: str, rows: pa.Table) -> None:
            connection.register(name if of_many else f"rows_of_{name}", rows)
            if not of_many:  # cursors of a connection do not see what is registered, nor temporary views
                connection.execute(f"CREATE TABLE {name} AS FROM rows_of_{name}").unregister(f"rows_of_{name}")

        bounds = [WHOLE] if question_ids is None else [Range(0, 1, name, name + "\0") for name in question_ids]
        for name in contracts.TABLES if tables is None else tables:
            contract = contracts.table(name)
            if contract.log:
                put(name, self.read(name))  # parts may be of several versions
                continue
            ranges = [WHOLE] if name == "rejects" else bounds
            files = dict.fromkeys(path for each in ranges for path in self.all_files(name, each, None, current))
            if files:
                connection.execute(f"CREATE {view} {name} AS SELECT * FROM {parquet_sql(files)}")
            else:
                put(name, self.schema(name).empty_table())
        return connection

    def rows(self, sql: str, tables: Sequence[str]) -> list[tuple[Any, ...]]:
        """Return the rows of a query over some tables."""
        with self.connect(tables=tables) as connection:
            return connection.execute(sql).fetchall()


def parquet_sql(paths: Iterable[Path]) -> str:
    """Return Parquet files as DuckDB reads them, for a FROM clause: names are names, not patterns or partitions."""
    names = ", ".join("'" + glob.escape(str(path)).replace("'", "''") + "'" for path in paths)
    return f"read_parquet([{names}], hive_partitioning = false)"

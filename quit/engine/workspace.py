"""A workspace: Parquet parts in numbered folders, one manifest a stage, DuckDB to ask questions.

:mod:`quit.engine.location` has the folder and its lock, :mod:`quit.engine.runs` the stage runs with their manifests,
:mod:`quit.engine.logs` what people append; here the tables are read.

Every file appears whole or not at all (:mod:`quit.store`), so a run can be killed anywhere. No part is read before it
was compared with its manifest (:meth:`Workspace.part_files`). Tables of older fingerprints stay until someone removes
them: going back to old settings costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from quit import contracts
from quit.common.columns import is_in, plain
from quit.common.ranges import WHOLE, Range
from quit.engine.logs import Log
from quit.engine.runs import Runs, parts_of
from quit.errors import WorkspaceError
from quit.store.parts import joined, read_log_part, read_part


class Workspace(Runs):
    """Tables under a folder or a URL. Open it with :meth:`open` or :meth:`create`; the class itself checks nothing."""

    def part_files(self, name: str, shard: Range = WHOLE, runs: Sequence[str] | None = None) -> list[tuple[Path, bool]]:
        """Return the current files of a table that overlap ``shard``, each with whether all its rows belong to it.

        A stage's file was fetched and compared with its manifest, once a process
        (:func:`quit.common.files.known_checksum`). Raises :class:`WorkspaceError` for the first that is missing or was
        altered.
        """
        if contracts.table(name).grows:  # people's work, not made by a stage; reviews are read whole
            return [(path, shard == WHOLE or name == "reviews") for path in Log(self, name).files]
        current = self.current(runs)
        if runs is None:
            # A stage that supersedes a table (the label update) has it for itself.
            superseding = [run for run, (_, manifest) in current.items() if name in manifest.get("supersedes", ())]
            runs = superseding[-1:] or None
        files: list[tuple[Path, Mapping[str, Any], bool]] = []
        for run, (folder, manifest) in current.items():
            if name in manifest["tables"] and (runs is None or run in runs):
                for part in manifest["tables"][name]["parts"]:
                    ends = None if "first" not in part else (part["first"], part["last"])  # None: not of questions
                    if part["rows"] and (shard == WHOLE or ends is None or not shard.misses(*ends)):
                        whole = shard == WHOLE or ends is None or shard.holds(*ends)
                        files.append((folder / name / part["file"], part, whole))
        self.store.fetch({path: part for path, part, _ in files})
        return [(path, whole) for path, _, whole in files]

    def read_questions(
        self, name: str, question_ids: Sequence[str], columns: Sequence[str], runs: Sequence[str] | None = None
    ) -> pa.Table:
        """Return some columns of a few questions' current rows, in table order; parts without them are not opened."""
        wanted = sorted(question_ids) or [""]
        rows = self.read(name, Range(0, 1, wanted[0], wanted[-1] + "\0"), runs, [*{*columns, "question_id"}])
        return rows.filter(is_in(rows.column("question_id"), pa.array(wanted, pa.string()))).select(columns)

    def read(
        self,
        name: str,
        shard: Range = WHOLE,
        runs: Sequence[str] | None = None,
        columns: Sequence[str] | None = None,
    ) -> pa.Table:
        """Return the current rows of a table, all of them or one shard's (empty if no stage has made any).

        ``columns``: only these, with question ids and permutations dictionary-encoded.
        """
        pieces = []
        for path, whole in self.part_files(name, shard, runs):
            if contracts.table(name).grows:
                rows = read_log_part(name, path)
            else:
                rows = read_part(path, columns and [*{*columns, "question_id"}])
            if not whole:
                ids = plain(rows.column("question_id"))
                keep = pc.greater_equal(ids, shard.first or "")
                rows = rows.filter(keep if shard.end is None else pc.and_(keep, pc.less(ids, shard.end)))
            pieces.append(rows)
        return joined(name, pieces, columns)

    def damaged(self) -> list[Path]:
        """Return the current parts that are missing or not as their manifest says; a damaged local copy is repaired."""
        damaged = []
        for path, part in (pair for stage_run in self.current().values() for pair in parts_of(*stage_run)):
            with suppress(WorkspaceError):
                if self.store.fault(path, part) is None:
                    self.store.fetch({path: part})
                    continue
            damaged.append(path)
        return damaged

    def connect(self, question_id: str | None = None, tables: Sequence[str] | None = None) -> duckdb.DuckDBPyConnection:
        """Return an in-memory DuckDB with one view a table over the current Parquet files.

        ``question_id``: open only the parts that may hold this question, and all rejects and logs.
        ``tables``: only these, where a store would have to be asked for the others in vain.
        """
        connection = duckdb.connect()
        bounds = WHOLE if question_id is None else Range(0, 1, question_id, question_id + "\0")
        for name in contracts.TABLES if tables is None else tables:
            contract = contracts.table(name)
            files = [str(path) for path, _ in self.part_files(name, WHOLE if name == "rejects" else bounds)]
            if files and contract.grows:
                connection.register(name, self.read(name))  # parts may be of several versions
            elif files:
                listed = ", ".join("'" + file.replace("'", "''") + "'" for file in files)
                connection.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet([{listed}])")
            else:
                connection.register(name, contract.schema.empty_table())
        return connection

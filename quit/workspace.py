"""A workspace: Parquet parts in numbered folders, one manifest a stage, DuckDB to ask questions.

::

    W/workspace.json                                   layout version
    W/build.json                                       profile, settings and sources of the last build
    W/state.json                                       stage run -> fingerprint of its current tables
    W/tables/03_rank/<fingerprint>/ranked_hints/part-00000-of-00002.parquet
    W/tables/03_rank/<fingerprint>/manifest.json       written last: its presence marks the stage as complete
    W/overrides/part-00001.parquet                     what people decided: one part an entry, never changed
    W/reviews/                                         what people said (quit/review/store.py); append-only, made by no stage

Every file is written under a temporary name, flushed to disk and moved into place, so a run killed anywhere leaves whole files
or none; what killed runs were writing is removed by the next one. No part is read before it was compared with its manifest
(:meth:`Workspace.check`). Tables of older fingerprints stay until someone removes them: going back to old settings costs nothing.
"""

from __future__ import annotations

import os
import shutil
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as dataset
from filelock import FileLock, Timeout

import schemas
from quit.errors import WorkspaceError
from quit.files import LEFTOVER, is_url, remove_leftovers, replacing, temporary_of, write_json, writing
from quit.parts import (
    damage,
    describe,
    joined,
    log_number,
    part_name,
    read_log_part,
    read_part,
    write_log_part,
    write_part,
)
from quit.ranges import WHOLE, Range
from quit.shapes import read_json


class Workspace:
    """One folder of tables. Open it with :meth:`open` or :meth:`create`.

    What is at a URL is a :class:`quit.remote.workspace.RemoteWorkspace`: the same on a local mirror, with the store behind the few
    methods that write (``put_json``, ``publish...``) and fetch (``bring...``); for a folder these have little or nothing to do.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def __str__(self) -> str:
        return str(self.path)

    @classmethod
    def at(cls, place: str | Path) -> Workspace:
        """Return what is or will be a workspace at a path or URL, unchecked. Raises what a store refuses."""
        if is_url(place):
            from quit.remote.workspace import RemoteWorkspace  # a folder needs none of it

            return RemoteWorkspace(str(place))
        return Workspace(Path(place))

    @classmethod
    def open(cls, place: str | Path) -> Workspace:
        """Open an existing workspace, a folder or a URL.

        Raises :class:`WorkspaceError` when there is none, or one this program cannot read, and what a store refuses.
        """
        opened = cls.at(place)
        opened.check_format()
        return opened

    def check_format(self) -> None:
        """Raise :class:`WorkspaceError` where there is no workspace, or one of another version of the layout."""
        if self.format < schemas.WORKSPACE_FORMAT:
            raise WorkspaceError(
                f"The workspace {self} has format {self.format}, this program's is {schemas.WORKSPACE_FORMAT}. Bring it up to date with: "
                f"quit workspace migrate -w {self}"
            )

    @property
    def format(self) -> int:
        """The version of the layout. Raises :class:`WorkspaceError` where there is no workspace, or a newer program's."""
        if not self.exists:
            raise WorkspaceError(f"{self} is no workspace. Make one with: quit build -w {self} --source triviahg:FILE")
        found = read_json(self.path / "workspace.json")["format"]
        if found > schemas.WORKSPACE_FORMAT:
            raise WorkspaceError(
                f"The workspace {self} has format {found}; this program knows up to {schemas.WORKSPACE_FORMAT}. Use a newer program."
            )
        return found

    @classmethod
    def create(cls, place: str | Path) -> Workspace:
        """Open a workspace, making it where there is none. A place with other things in it is refused (:class:`WorkspaceError`)."""
        made = cls.at(place)
        if made.exists:
            made.check_format()
            return made
        if not made.empty:
            raise WorkspaceError(f"{made} holds other files and is no workspace. Name a new or an empty folder.")
        made.make()
        return made

    @property
    def address(self) -> str:
        """The whole path, or the URL: what another process opens it by."""
        return str(self.path.resolve())

    @property
    def name(self) -> str:
        """The last part of the address."""
        return self.path.resolve().name

    @property
    def exists(self) -> bool:
        """Whether there is a workspace."""
        return (self.path / "workspace.json").is_file()

    @property
    def empty(self) -> bool:
        """Whether there is nothing, but for what a run left that was killed before it had made the workspace."""
        return not self.path.is_dir() or all(LEFTOVER.fullmatch(path.name) for path in self.path.iterdir())

    def make(self) -> None:
        """Write what makes the place a workspace."""
        with writing(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            self._remove_leftovers()
            write_json(self.path / "workspace.json", {"format": schemas.WORKSPACE_FORMAT})

    # What a store behind a URL needs, and a folder does not

    def heed(self, settings: Any) -> None:
        """Go by the settings of a run."""

    def refresh(self) -> None:
        """Take notice of what others have written, before work."""

    def look(self) -> None:
        """Take notice of what workers elsewhere have written for the run that holds the workspace."""

    def bring(self, paths: Sequence[Path]) -> None:
        """Make sure that these files are here. Raises :class:`WorkspaceError` where the store lacks one."""

    def bring_folder(self, folder: Path) -> None:
        """Make sure that every file below a folder is here."""

    def has(self, path: Path) -> bool:
        """Whether a file is part of the workspace, not only of its mirror."""
        return path.is_file()

    def files_below(self, folder: Path) -> dict[str, float]:
        """Return the name of every file below a folder, relative to it, and when it was written (0 where nobody says)."""
        return {
            path.relative_to(folder).as_posix(): path.stat().st_mtime for path in folder.rglob("*") if path.is_file()
        }

    @contextmanager
    def changing(self, name: str) -> Iterator[None]:
        """Change a small file, which others see afterwards."""
        yield

    def publish_once(self, path: Path) -> None:
        """Let others see a file that never changes."""

    def publish_folder(self, folder: Path, last: str) -> None:
        """Let others see a folder; ``last``: the file that marks it as complete."""

    def flush_replies(self) -> None:
        """Let others see the replies of language models that came in so far."""

    def keep_replies(self, cache: Any) -> None:
        """Bring and keep the replies of language models that this workspace rests on (``cache``: a ``GenerationCache``)."""

    def put_json(self, name: str, value: Any) -> None:
        """Write one of the small files that change."""
        write_json(self.path / name, value)

    def place_new(self, temporary: Path, target: Path) -> bool:
        """Give a finished file its name; False where the name is taken, which a move would not notice."""
        try:
            os.link(temporary, target)
        except FileExistsError:
            return False
        return True

    def drop_other_parts(self, folder: Path, wanted: Sequence[str]) -> None:
        """Remove what is no part of a table (left by an interrupted run with other shards)."""
        for path in folder.iterdir():
            if path.name not in wanted:
                path.unlink()

    # Locking

    @contextmanager
    def lock(self, seconds: float, waiting: Callable[[str], None] = lambda _: None) -> Iterator[None]:
        """Hold the workspace for one run. The system frees the lock when a process dies, however it dies.

        ``waiting`` is told once who holds it. Raises :class:`WorkspaceError` when it is still held after ``seconds``.
        """
        holder = self.path / "lock.json"
        lock = FileLock(self.path / "lock")
        try:
            try:
                lock.acquire(timeout=0)
            except Timeout:
                waiting(f"Another run holds {self.path} ({self.holder or 'just begun'}); waiting for it.")
                lock.acquire(timeout=seconds)
        except Timeout:
            raise WorkspaceError(
                f"Another run still holds {self.path} ({self.holder or 'unknown'}) after {seconds:g} s. Try again when it has finished."
            ) from None
        except OSError as error:
            raise WorkspaceError(f"Cannot lock {self.path}: {error}. Check that you may write there.") from error
        try:
            self._remove_leftovers()
            write_json(
                holder, {"pid": os.getpid(), "host": socket.gethostname(), "since": time.strftime("%Y-%m-%d %H:%M:%S")}
            )
            yield
        finally:
            holder.unlink(missing_ok=True)
            lock.release()

    def _remove_leftovers(self) -> None:
        """Remove what killed runs were writing. Only files that nobody writes without the lock."""
        remove_leftovers(self.path / "tables")
        for name in ("workspace", "build", "state", "lock"):
            remove_leftovers(self.path, f"{name}.json.*")
        remove_leftovers(self.path / "reviews", "*.json.*")

    @property
    def lock_info(self) -> dict[str, Any] | None:
        """What the lock says of its holder (``pid``, ``host``, ``since``), dead or alive; None where it says nothing."""
        try:
            return read_json(self.path / "lock.json")
        except WorkspaceError:  # half a line, of a machine that went down
            return None

    @property
    def holder(self) -> str:
        """Who holds the workspace: process, host and time; empty where nobody does."""
        found = self.lock_info
        return (
            f"process {found.get('pid', '?')} on {found.get('host', '?')} since {found.get('since', '?')}"
            if found
            else ""
        )

    # State

    @property
    def state(self) -> dict[str, str]:
        """Stage run (``rank``, ``read:minilm-late``) to the fingerprint of its current tables, in pipeline order."""
        return read_json(self.path / "state.json", {})

    def set_current(self, state: Mapping[str, str]) -> None:
        """Make these fingerprints the current ones."""
        if dict(state) != self.state:
            self.put_json("state.json", dict(state))

    @property
    def build(self) -> dict[str, Any] | None:
        """Profile, settings and sources of the last build, or None."""
        return read_json(self.path / "build.json")

    def set_build(self, values: Mapping[str, Any]) -> None:
        """Remember how this workspace is built. The caller holds the workspace, and has read what it replaces since then."""
        if dict(values) != self.build:
            self.put_json("build.json", dict(values))

    # Stage runs

    def folder(self, run: str, number: int, fingerprint: str) -> Path:
        """Return the folder of a stage run's tables."""
        return self.path / "tables" / f"{number:02d}_{run.replace(':', '_')}" / fingerprint

    def manifest(self, folder: Path) -> dict[str, Any] | None:
        """Return the manifest of a complete stage run, or None. Raises :class:`WorkspaceError` for a damaged one."""
        return read_json(folder / "manifest.json")

    def part_done(self, folder: Path, outputs: Sequence[str], shard: Range, *, publish: bool = False) -> bool:
        """Whether every table of a stage run has this shard's part. ``publish``: one that only this machine has becomes one that all have."""
        return all((folder / name / part_name(shard)).is_file() for name in outputs)

    def write_part(self, folder: Path, shard: Range, tables: Mapping[str, pa.Table]) -> None:
        """Write one shard's part of every table of a stage run."""
        for name, rows in tables.items():
            target = folder / name / part_name(shard)
            rows = rows.cast(schemas.table(name).schema)
            with writing(target), replacing(target) as temporary:
                write_part(temporary, rows)
            self.publish_once(target)

    def finish(self, folder: Path, outputs: Sequence[str], count: int, facts: Mapping[str, Any]) -> None:
        """Write a stage run's manifest and remove what no part of it is (left by an interrupted run with other shards)."""
        tables: dict[str, Any] = {}
        for name in outputs:
            wanted = [part_name(Range(index, count)) for index in range(count)]
            self.bring([folder / name / part for part in wanted])
            parts = [describe(folder / name / part, name) for part in wanted]
            self.drop_other_parts(folder / name, wanted)
            tables[name] = {"rows": sum(part["rows"] for part in parts), "parts": parts}
        write_json(folder / "manifest.json", {**facts, "tables": tables})
        self.publish_once(folder / "manifest.json")

    def part_fault(self, path: Path, part: Mapping[str, Any] | None) -> str | None:
        """Return what is wrong with a part (:func:`quit.parts.damage`), None where nothing is."""
        return damage(path, part)

    def remove(self, paths: Sequence[Path]) -> None:
        """Remove files. The caller holds the workspace."""
        for path in paths:
            with writing(path):
                path.unlink(missing_ok=True)

    def discard(self, folder: Path) -> None:
        """Remove a stage run. A manifest goes first: whatever a kill leaves is an unfinished run, never one that lacks parts."""
        self.remove([folder / "manifest.json"])
        self.remove([path for path in folder.rglob("*") if path.is_file()])
        shutil.rmtree(folder, ignore_errors=True)

    # Logs: tables that people append to

    def log_files(self, name: str, parts: int | None = None) -> list[Path]:
        """Return the parts of a log, oldest first; ``parts``: only the first so many (a log as it was)."""
        files = sorted((self.path / name).glob("part-*.parquet"))
        return files if parts is None else files[:parts]

    def read_log(self, name: str, parts: int | None = None) -> pa.Table:
        """Return the rows of a log, oldest first (empty if there are none)."""
        return joined(name, [read_log_part(name, path) for path in self.log_files(name, parts)])

    def append(self, name: str, make: Callable[[pa.Table], pa.Table]) -> pa.Table:
        """Append rows to a log as one part and return them.

        ``make`` is given the log and returns the new rows (none: nothing is written). Nobody else can append meanwhile; a
        running build goes on with the log as it was when it began.
        """
        folder = self.path / name
        with writing(folder):
            folder.mkdir(exist_ok=True)
            with FileLock(folder / "lock"):
                rows = make(self.read_log(name)).cast(schemas.table(name).schema)
                if len(rows) and self.add_log_part(name, rows) is None:
                    raise WorkspaceError(
                        f"{self.log_files(name)[-1]} was written by another program meanwhile. Run the same command again."
                    )
        return rows

    def next_log_part(self, name: str) -> Path:
        """Return the path of a log's next part: numbered after the last one that is there, whichever others are."""
        last = self.log_files(name)[-1:]
        return self.path / name / f"part-{log_number(last[0]) + 1 if last else 1:05d}.parquet"

    def add_log_part(self, name: str, rows: pa.Table) -> Path | None:
        """Write rows as a log's next part and return its path; None where someone else has taken that name meanwhile.

        Nothing that exists is ever replaced. The caller holds the log's own lock.
        """
        target = self.next_log_part(name)
        with writing(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            remove_leftovers(target.parent, "part-*")
            temporary = temporary_of(target)
            try:
                write_log_part(temporary, rows)
                with temporary.open("rb") as file:
                    os.fsync(file.fileno())
                return target if self.place_new(temporary, target) else None
            finally:
                temporary.unlink(missing_ok=True)

    # Reading

    def current(self) -> dict[str, tuple[Path, dict[str, Any]]]:
        """Return stage run -> (folder, manifest) of the current tables; an incomplete run is left out."""
        found: dict[str, tuple[Path, dict[str, Any]]] = {}
        for run, fingerprint in self.state.items():
            for folder in sorted((self.path / "tables").glob(f"*_{run.replace(':', '_')}/{fingerprint}")):
                manifest = self.manifest(folder)
                if manifest is not None:
                    found[run] = (folder, manifest)
        return found

    def current_parts(self) -> list[tuple[Path, dict[str, Any]]]:
        """Return the path of every current part with what its manifest says of it (``file``, ``rows``, ``bytes``, ``sha256``)."""
        return [pair for folder, manifest in self.current().values() for pair in parts_of(folder, manifest)]

    def check(self, parts: Sequence[tuple[Path, Mapping[str, Any]]]) -> None:
        """Make sure that parts are here and are what their manifests say.

        Every file is hashed once a process (:func:`quit.files.known_checksum`). Of a part whose manifest knows no checksum only what
        :func:`quit.parts.damage` says can be checked. Raises :class:`WorkspaceError` for the first that is missing or altered.
        """
        self.bring([path for path, _ in parts])
        for path, part in parts:
            if (fault := damage(path, part)) is not None:
                raise WorkspaceError(f"{path} {fault}. Make it anew: quit build -w {self}")

    def part_files(self, name: str, shard: Range = WHOLE, runs: Sequence[str] | None = None) -> list[tuple[Path, bool]]:
        """Return the current files of a table that overlap ``shard``, each with whether all its rows belong to it.

        What a stage made was compared with its manifest (:meth:`check`). Raises :class:`WorkspaceError` for what was altered.
        """
        if schemas.table(name).grows:  # people's work, not made by a stage; reviews are read whole
            return [(path, shard == WHOLE or name == "reviews") for path in self.log_files(name)]
        current = self.current()
        if runs is None:
            # A stage that supersedes a table (the label update) has it for itself; without it, the earlier one is the current one.
            runs = [run for run, (_, manifest) in current.items() if name in manifest.get("supersedes", ())][
                -1:
            ] or None
        files: list[tuple[Path, Mapping[str, Any], bool]] = []
        for run, (folder, manifest) in current.items():
            if name in manifest["tables"] and (runs is None or run in runs):
                for part in manifest["tables"][name]["parts"]:
                    if part["rows"] and (shard == WHOLE or not shard.misses(part["first"], part["last"])):
                        whole = shard == WHOLE or shard.holds(part["first"], part["last"])
                        files.append((folder / name / part["file"], part, whole))
        self.check([(path, part) for path, part, _ in files])
        return [(path, whole) for path, _, whole in files]

    def read_questions(
        self, name: str, question_ids: Sequence[str], columns: Sequence[str], runs: Sequence[str] | None = None
    ) -> pa.Table:
        """Return some columns of the current rows of a few questions, in table order; parts without them are not opened."""
        whole = schemas.table(name).schema
        schema = pa.schema([whole.field(column) for column in columns])
        if not question_ids:
            return schema.empty_table()
        wanted = sorted(question_ids)
        bounds = Range(0, 1, wanted[0], wanted[-1] + "\0")
        files = [str(path) for path, _ in self.part_files(name, bounds, runs)]
        if not files:
            return schema.empty_table()
        rows = dataset.dataset(files, format="parquet", partitioning=None).to_table(
            columns=list(columns), filter=pc.field("question_id").isin(pa.array(wanted, pa.string()))
        )
        return rows.cast(schema)

    def read(self, name: str, shard: Range = WHOLE, runs: Sequence[str] | None = None) -> pa.Table:
        """Return the current rows of a table, all of them or one shard's (empty if no stage has made any)."""
        pieces = []
        for path, whole in self.part_files(name, shard, runs):
            rows = read_log_part(name, path) if schemas.table(name).grows else read_part(path)
            if not whole:
                ids = rows.column("question_id")
                keep = pa.array([True] * len(rows)) if shard.first is None else pc.greater_equal(ids, shard.first)
                if shard.end is not None:
                    keep = pc.and_(keep, pc.less(ids, shard.end))
                rows = rows.filter(keep)
            pieces.append(rows)
        return joined(name, pieces)

    def damaged(self) -> list[Path]:
        """Return the current part files that are missing or do not have the checksum of their manifest."""
        return [path for path, part in self.current_parts() if self.part_fault(path, part) is not None]

    def connect(self, question_id: str | None = None, tables: Sequence[str] | None = None) -> duckdb.DuckDBPyConnection:
        """Return an in-memory DuckDB with one view a table over the current Parquet files.

        ``question_id``: open only the parts that may hold this question (all of tables whose parts are not bounded: rejects, logs).
        ``tables``: only these, where a store would have to be asked for the others in vain.
        """
        connection = duckdb.connect()
        bounds = WHOLE if question_id is None else Range(0, 1, question_id, question_id + "\0")
        for name in schemas.TABLES if tables is None else tables:
            contract = schemas.table(name)
            files = [str(path) for path, _ in self.part_files(name, WHOLE if name == "rejects" else bounds)]
            if files and contract.grows:
                connection.register(name, self.read(name))  # parts may be of several versions
            elif files:
                listed = ", ".join("'" + file.replace("'", "''") + "'" for file in files)
                connection.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet([{listed}])")
            else:
                connection.register(name, contract.schema.empty_table())
        return connection


def parts_of(folder: Path, manifest: Mapping[str, Any]) -> list[tuple[Path, dict[str, Any]]]:
    """Return the path of every part of a stage run with what its manifest says of it."""
    return [
        (folder / name / part["file"], part) for name, facts in manifest["tables"].items() for part in facts["parts"]
    ]

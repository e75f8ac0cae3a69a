"""A workspace: Parquet parts in numbered folders, one manifest a stage, DuckDB to ask questions.

::

    W/workspace.json                               layout version
    W/build.json                                   profile, settings and sources of the last build
    W/state.json                                   stage run -> fingerprint of its current tables
    W/tables/03_rank/<fingerprint>/ranked_hints/part-00000-of-00002.parquet
    W/tables/03_rank/<fingerprint>/manifest.json   written last: its presence marks the stage as complete
    W/overrides/part-00001.parquet                 what people decided: one part an entry, never changed
    W/reviews/                                     what people said (quit/review/store.py): appended, made by no stage

Every file appears whole or not at all (:mod:`quit.store`), so a run can be killed anywhere. No part is read before it
was compared with its manifest (:meth:`Workspace.part_files`). Tables of older fingerprints stay until someone removes
them: going back to old settings costs nothing.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from filelock import FileLock

from quit import contracts
from quit.common.columns import is_in, plain
from quit.common.files import json_bytes, remove_leftovers, writing
from quit.common.ranges import WHOLE, Range
from quit.common.shapes import read_json
from quit.errors import WorkspaceError, refuse_newer
from quit.store import open_store
from quit.store.base import MARKER, Make, described
from quit.store.parts import (
    describe,
    joined,
    log_number,
    part_name,
    read_log_part,
    read_part,
    write_log_part,
    write_part,
)


class Workspace:
    """Tables under a folder or a URL. Open it with :meth:`open` or :meth:`create`.

    ``store`` writes its files and fetches them to below ``path`` (of a workspace at a URL, a local copy).
    """

    def __init__(self, place: str | Path) -> None:
        self.store = open_store(place)
        self.path = self.store.path
        self._held = False
        self._replies: Any = None
        self._manifests: dict[Path, tuple[tuple[int, int, int], dict[str, Any]]] = {}

    def __str__(self) -> str:
        return str(self.store)

    @classmethod
    def at(cls, place: str | Path) -> Workspace:
        """Return what is or will be a workspace at a path or URL, unchecked. Raises what a store refuses."""
        return cls(place)

    @classmethod
    def open(cls, place: str | Path) -> Workspace:
        """Open an existing workspace, a folder or a URL.

        Raises :class:`WorkspaceError` when there is none, or one this program cannot read, and what a store refuses.
        """
        opened = cls(place)
        opened.check_format()
        return opened

    @classmethod
    def create(cls, place: str | Path) -> Workspace:
        """Open a workspace, making it where there is none.

        Raises :class:`WorkspaceError` for a place with other files in it, and as :meth:`open` does.
        """
        workspace = cls(place)
        if not workspace.exists:
            if any(True for _ in workspace.store.below(workspace.path)):
                raise WorkspaceError(
                    f"{workspace} holds other files and is not a workspace. Name a new or an empty folder."
                )
            workspace.make()
        workspace.check_format()
        return workspace

    def check_format(self) -> None:
        """Raise :class:`WorkspaceError` for no workspace, or one that a newer program made."""
        if not self.exists:
            if (self.path / "release.json").is_file():
                raise WorkspaceError(
                    f"{self} is a release, not a workspace. For it there are: quit release show {self}; quit export "
                    f"--release {self}; and with -w {self}: quit report, browse, show and query."
                )
            raise WorkspaceError(
                f"{self} is not a workspace. Make one with: quit build -w {self} --source triviahg:FILE"
            )
        refuse_newer(f"The workspace {self}", read_json(self.path / MARKER)["format"], contracts.WORKSPACE_FORMAT)

    @property
    def address(self) -> str:
        """The whole path, or the URL: what another process opens it by."""
        return self.store.address

    @property
    def name(self) -> str:
        """The last part of the address."""
        return Path(self.address).name

    @property
    def exists(self) -> bool:
        """Whether there is a workspace."""
        return self.store.has(self.path / MARKER)

    def make(self) -> None:
        """Write what makes the place a workspace. Another machine's, made at the same moment, is as good."""
        self.store.add(self.path / MARKER, _json({"format": contracts.WORKSPACE_FORMAT, "id": uuid.uuid4().hex}))
        self.look()

    def follow(self, settings: Any) -> None:
        """Follow the settings of a run, of which those of ``remote`` concern a shared store."""
        if self.store.objects is not None and settings.remote != self.store.objects.how:
            self.store.objects.use(settings.remote)

    def look(self) -> None:
        """Take notice of what others have written. Raises :class:`WorkspaceError` where the workspace is gone."""
        if not self.store.has(self.path / MARKER, now=True):
            raise WorkspaceError(f"{self} is not a workspace any more: {MARKER} is gone. Restore it, or build again.")

    def refresh(self) -> None:
        """Take notice of what others have written; who holds the lock knows it already."""
        if not self._held:
            self.look()

    # Locking

    @contextmanager
    def lock(self, seconds: float, waiting: Callable[[str], None] = lambda _: None) -> Iterator[None]:
        """Hold the workspace for one run; a run that dies frees it.

        ``waiting`` is called once with who holds it. Raises :class:`WorkspaceError` when it is still held
        after ``seconds``.
        """
        with self.store.lock(seconds, waiting):
            self._held = True
            try:
                yield
                self.flush_replies()
            finally:
                self._held = False

    @property
    def lock_info(self) -> dict[str, Any] | None:
        """What the lock says of its holder (``pid``, ``host``, ``since``), dead or alive, or None."""
        return self.store.holder()

    @property
    def holder(self) -> str:
        """Who holds the workspace: process, host and time; empty where nobody does."""
        return described(self.lock_info)

    # Small files, and replies of language models (those of a folder are in the generation cache of its machine alone)

    def put_json(self, name: str, value: Any) -> None:
        """Write one of the small files that change."""
        self.store.write(self.path / name, _json(value))

    def changing(self, name: str) -> AbstractContextManager[Path]:
        """Give the path of a small file to change in place; others see the change afterwards."""
        return self.store.changing(self.path / name)

    def bring_folder(self, folder: Path) -> None:
        """Make sure that every file below a folder is here."""
        self.store.fetch({path: None for path, _ in self.store.below(folder)})

    def keep_replies(self, cache: Any) -> None:
        """Fetch the replies that a shared store has into a ``GenerationCache``, and copy new ones to it from now on."""
        if self.store.objects is not None and self._replies is None:
            from quit.engine.replies import Replies

            self._replies = Replies(self.store.objects, cache)

    def flush_replies(self) -> None:
        """Copy the replies that came in so far to the shared store."""
        if self._replies is not None:
            self._replies.flush()

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
        """Remember how this workspace is built. The caller holds the workspace, and has read ``build`` since then."""
        if dict(values) != self.build:
            self.put_json("build.json", dict(values))

    # Stage runs

    def folder(self, run: str, number: int, fingerprint: str) -> Path:
        """Return the folder of a stage run's tables."""
        return self.path / "tables" / f"{number:02d}_{run.replace(':', '_')}" / fingerprint

    def manifest(self, folder: Path) -> dict[str, Any] | None:
        """Return the manifest of a complete stage run, or None. Raises :class:`WorkspaceError` for a damaged one, and
        one of another run."""
        path = folder / "manifest.json"
        if not self.store.has(path):
            return None
        self.store.fetch({path: None})
        try:
            status = path.stat()
        except FileNotFoundError:  # removed by another process meanwhile
            return None
        stamp = (status.st_ino, status.st_mtime_ns, status.st_size)
        if self._manifests.get(path, (None,))[0] != stamp:
            manifest = read_json(path)
            if manifest is not None and manifest.get("fingerprint", folder.name) != folder.name:
                raise WorkspaceError(f"{path} is of another run. Build it again: quit build -w {self.path}")
            self._manifests[path] = (stamp, manifest)
        return self._manifests[path][1]

    def part_done(self, folder: Path, outputs: Sequence[str], shard: Range, *, publish: bool = False) -> bool:
        """Whether every table of a stage run has this shard's part.

        ``publish``: a part that a killed run left in the local copy alone is added to the store.
        """
        paths = [folder / name / part_name(shard) for name in outputs]
        if publish:
            for path in paths:
                if path.is_file() and not self.store.has(path):
                    self.store.add(path, partial(shutil.copyfile, path))
        return all(self.store.has(path) for path in paths)

    def write_part(self, folder: Path, shard: Range, tables: Mapping[str, pa.Table]) -> None:
        """Write one shard's part of every table of a stage run."""
        for name, rows in tables.items():
            rows = rows.cast(contracts.table(name).schema)
            self.store.add(folder / name / part_name(shard), partial(write_part, rows=rows))

    def finish(self, folder: Path, outputs: Sequence[str], count: int, facts: Mapping[str, Any]) -> None:
        """Write a stage run's manifest, and remove what an interrupted run with other shards left."""
        tables: dict[str, Any] = {}
        for name in outputs:
            wanted = [folder / name / part_name(Range(index, count)) for index in range(count)]
            self.store.fetch(dict.fromkeys(wanted))
            parts = [describe(path, name) for path in wanted]
            others = {*(path for path, _ in self.store.below(folder / name)), *(folder / name).iterdir()}
            self.store.remove(others - {*wanted})
            tables[name] = {"rows": sum(part["rows"] for part in parts), "parts": parts}
        self.store.add(folder / "manifest.json", _json({**facts, "tables": tables}))

    def discard(self, folder: Path) -> None:
        """Remove a stage run, its manifest first: what a kill leaves is an unfinished run, not one that lacks parts."""
        self.store.remove([folder / "manifest.json"])
        self.store.remove([path for path, _ in self.store.below(folder)])
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

        ``make`` is given the log and returns the new rows (none: nothing is written); it is called again where another
        machine appended meanwhile. A running build continues with the log as it was when it began.
        """
        folder = self.path / name
        with writing(folder):
            folder.mkdir(exist_ok=True)
            with FileLock(folder / "lock"):  # other processes of this machine
                while True:
                    self.look()
                    rows = make(self.read_log(name)).cast(contracts.table(name).schema)
                    if not len(rows) or self.add_log_part(name, rows) is not None:
                        return rows
                    if self.store.objects is None:  # not by another machine: by a program that does not know the lock
                        raise WorkspaceError(
                            f"{self.log_files(name)[-1]} was written by another program meanwhile. "
                            "Run the same command again."
                        )

    def next_log_part(self, name: str) -> Path:
        """Return the path of a log's next part: numbered after the last one that is there, whichever others are."""
        last = self.log_files(name)[-1:]
        return self.path / name / f"part-{log_number(last[0]) + 1 if last else 1:05d}.parquet"

    def add_log_part(self, name: str, rows: pa.Table) -> Path | None:
        """Write rows as a log's next part and return its path; None where someone else has taken that name meanwhile.

        Nothing that exists is ever replaced. The caller holds the log's own lock.
        """
        target = self.next_log_part(name)
        remove_leftovers(target.parent, "part-*")
        return target if self.store.create(target, partial(write_log_part, rows=rows)) else None

    # Reading

    def current(self, runs: Sequence[str] | None = None) -> dict[str, tuple[Path, dict[str, Any]]]:
        """Return stage run -> (folder, manifest) of the current tables, or of these runs' alone; an incomplete run is
        left out."""
        folders: dict[str, list[Path]] = {}
        for folder in sorted((self.path / "tables").glob("*_*")):
            folders.setdefault(folder.name.partition("_")[2], []).append(folder)
        tables: dict[str, tuple[Path, dict[str, Any]]] = {}
        for run, fingerprint in self.state.items():
            if runs is None or run in runs:
                for folder in folders.get(run.replace(":", "_"), ()):
                    manifest = self.manifest(folder / fingerprint)
                    if manifest is not None:
                        tables[run] = (folder / fingerprint, manifest)
        return tables

    def current_parts(self) -> list[tuple[Path, dict[str, Any]]]:
        """Return the path of every current part, with its manifest's ``file``, ``rows``, ``bytes`` and ``sha256``."""
        return [pair for folder, manifest in self.current().values() for pair in parts_of(folder, manifest)]

    def part_files(self, name: str, shard: Range = WHOLE, runs: Sequence[str] | None = None) -> list[tuple[Path, bool]]:
        """Return the current files of a table that overlap ``shard``, each with whether all its rows belong to it.

        A stage's file was fetched and compared with its manifest, once a process
        (:func:`quit.common.files.known_checksum`). Raises :class:`WorkspaceError` for the first that is missing or was
        altered.
        """
        if contracts.table(name).grows:  # people's work, not made by a stage; reviews are read whole
            return [(path, shard == WHOLE or name == "reviews") for path in self.log_files(name)]
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
        for path, part in self.current_parts():
            try:
                if self.store.fault(path, part) is None:
                    self.store.fetch({path: part})
                    continue
            except WorkspaceError:
                pass
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


def parts_of(folder: Path, manifest: Mapping[str, Any]) -> list[tuple[Path, dict[str, Any]]]:
    """Return the path of every part of a stage run with what its manifest says of it."""
    return [
        (folder / name / part["file"], part) for name, facts in manifest["tables"].items() for part in facts["parts"]
    ]


def _json(value: Any) -> Make:
    return lambda temporary: temporary.write_bytes(json_bytes(value))

"""A workspace: Parquet parts in numbered folders, one manifest per stage run, DuckDB to ask questions.

::

    W/state.json                                   stage run -> fingerprint of its current tables
    W/tables/03_rank/<fingerprint>/ranked_hints/part-00000-of-00002.parquet
    W/tables/03_rank/<fingerprint>/manifest.json   written last: its presence marks the stage run as complete

Every file appears whole or not at all (:mod:`quit.common.files`), so a run can be killed anywhere. Every part is
compared with its manifest before it is read (:meth:`Workspace.part_files`). Tables of older fingerprints stay until
someone removes them: going back to old settings costs nothing.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, cast

import pyarrow as pa

from quit import contracts
from quit.common.files import files_below, refuse_links, remove_files, replacing, write_json, writing
from quit.common.ids import content_hash
from quit.common.manifests import as_written, with_checksum
from quit.common.parquet import Owner
from quit.common.ranges import WHOLE, Range
from quit.common.rows import grouped
from quit.common.state_files import StateFile
from quit.engine.location import Location
from quit.engine.logs import Log
from quit.engine.parts import MANIFEST, Manifest, Part, PartedTable, describe, fault_of, part_name, write_part
from quit.engine.reading import CurrentRun, CurrentRuns, TableReader
from quit.errors import WorkspaceError
from quit.text.words import shell_word

_STATE: StateFile[dict[str, str]] = StateFile("state.json", dict[str, str])


class StageRun(NamedTuple):
    """A stage run (``rank``, ``read:minilm-late``) under one fingerprint, complete or not, and its tables' folder."""

    run: str
    fingerprint: str
    folder: Path


class _ReadManifest(NamedTuple):
    """A manifest that was read: the state of its file then, and the hash of its tables."""

    stamp: tuple[int, int, int]
    manifest: Manifest
    version: str


class Workspace(Location, TableReader):
    """Tables under a folder. Open it with :meth:`open` or :meth:`create`; the class itself checks nothing."""

    def __init__(self, location: str | Path) -> None:
        super().__init__(location)
        self._manifests: dict[Path, _ReadManifest] = {}

    # Stage runs

    @property
    def state(self) -> dict[str, str]:
        """Stage run (``rank``, ``read:minilm-late``) to the fingerprint of its current tables, in pipeline order."""
        return _STATE.read(self.path) or {}

    @property
    def owner(self) -> Owner:
        """As :attr:`TableReader.owner`."""
        return Owner(WorkspaceError, f"Build it again: quit build -w {shell_word(self)}")

    @property
    def versions(self) -> dict[str, str]:
        """As :attr:`TableReader.versions`."""
        return {run: self._manifests[folder / "manifest.json"].version for run, (folder, _) in self.current().items()}

    def version(self, folder: Path) -> str | None:
        """Return the hash of a stage run's tables, None where it is incomplete. Raises as :meth:`manifest` does."""
        return None if self.manifest(folder) is None else self._manifests[folder / "manifest.json"].version

    def set_current(self, state: Mapping[str, str]) -> None:
        """Make these fingerprints the current ones."""
        if dict(state) != self.state:
            self.put_json("state.json", dict(state))

    def folder(self, run: str, number: int, fingerprint: str) -> Path:
        """Return the folder of a stage run's tables."""
        return self.path / "tables" / f"{number:02d}_{run.replace(':', '_')}" / fingerprint

    def manifest(self, folder: Path) -> Manifest | None:
        """Return the manifest of a complete stage run, or None. Raises :class:`WorkspaceError` for a damaged one, and
        one of another run."""
        path = folder / "manifest.json"
        try:
            status = path.stat()
        except FileNotFoundError:
            return None
        stamp = (status.st_ino, status.st_mtime_ns, status.st_size)
        if path not in self._manifests or self._manifests[path].stamp != stamp:
            value = MANIFEST.read(folder)
            if value is None:  # removed by another process meanwhile
                return None
            if value.get("fingerprint", folder.name) != folder.name:
                raise self.owner.error(f"{path} is of another run. {self.owner.advice}")
            if (manifest := as_written(value)) is None:
                raise self.owner.error(f"{path} was altered. {self.owner.advice}")
            self._manifests[path] = _ReadManifest(stamp, cast(Manifest, manifest), content_hash(manifest["tables"]))
        return self._manifests[path].manifest

    def part_done(self, folder: Path, outputs: Sequence[str], shard: Range) -> bool:
        """Whether every table of a stage run has this shard's part."""
        return all((folder / name / part_name(shard)).is_file() for name in outputs)

    def write_part(self, folder: Path, shard: Range, tables: Mapping[str, pa.Table]) -> None:
        """Write one shard's part of every table of a stage run."""
        for name, rows in tables.items():
            path = folder / name / part_name(shard)
            with writing(path), replacing(path) as temporary:
                write_part(temporary, rows, contracts.table(name).schema)

    def finish(self, folder: Path, outputs: Sequence[str], count: int, facts: Mapping[str, object]) -> None:
        """Write a stage run's manifest, and remove what an interrupted run with other shards left."""
        tables: dict[str, PartedTable] = {}
        for name in outputs:
            paths = [folder / name / part_name(Range(index, count)) for index in range(count)]
            parts = [describe(path, name) for path in paths]
            self.remove(folder, {*(folder / name).iterdir()} - {*paths})
            tables[name] = {"rows": sum(part["rows"] for part in parts), "parts": parts}
        write_json(folder / "manifest.json", with_checksum({**facts, "tables": tables}))

    def remove(self, folder: Path, paths: Iterable[Path]) -> None:
        """Remove files of a stage run. Raises ``InputError`` for a link in its folder, and removes none then."""
        if paths := [*paths]:
            self.refuse_links(folder)
            remove_files(paths)

    def refuse_links(self, folder: Path) -> None:
        """Raise ``InputError`` for a link in a stage run's folder: what it leads to is not removed."""
        refuse_links(folder, "files outside the workspace would be removed")

    def discard(self, folder: Path) -> None:
        """Remove a stage run, its manifest first: killed here, the run is incomplete rather than damaged. Raises as
        :meth:`remove`."""
        self.remove(folder, [folder / "manifest.json", *files_below(folder)])
        shutil.rmtree(folder, ignore_errors=True)

    def stage_runs(self) -> Iterator[StageRun]:
        """Yield all stage runs with a folder, also those of other settings, by stage."""
        for run, stage in self._stage_folders:
            for folder in stage.iterdir() if stage.is_dir() else ():
                if folder.is_dir():
                    yield StageRun(run, folder.name, folder)

    @property
    def _stage_folders(self) -> list[tuple[str, Path]]:
        """The parents of :meth:`folder`, each with its run; names of stages and readers have no underscore."""
        folders = sorted((self.path / "tables").glob("*_*"))
        return [(folder.name.partition("_")[2].replace("_", ":"), folder) for folder in folders]

    def current(self, runs: Sequence[str] | None = None) -> dict[str, CurrentRun]:
        """Return the current tables by stage run, or of these runs' alone; an incomplete run is left out."""
        folders = grouped(self._stage_folders)
        tables: dict[str, CurrentRun] = {}
        for run, fingerprint in self.state.items():
            if runs is None or run in runs:
                for folder in folders.get(run, ()):
                    manifest = self.manifest(folder / fingerprint)
                    if manifest is not None:
                        tables[run] = CurrentRun(folder / fingerprint, manifest)
        return tables

    # Tables

    @property
    def judges(self) -> Path:
        """As :attr:`TableReader.judges`."""
        return self.path / "judges"

    @property
    def judged(self) -> str:
        """As :attr:`TableReader.judged`."""
        versions = self.versions.items()
        return content_hash({run: version for run, version in versions if run.partition(":")[0] in ("collect", "read")})

    def part_files(
        self, name: str, shard: Range = WHOLE, runs: Sequence[str] | None = None, current: CurrentRuns | None = None
    ) -> list[Path]:
        """Return the current files of a table that may hold rows of ``shard``; of a log, all.

        A stage's file was compared with its manifest, once per process
        (:func:`quit.common.checksums.known_checksum`). ``current``: what :meth:`current` returns, for callers that ask
        for several tables. Raises :class:`WorkspaceError` for the first file that is missing or was altered.
        """
        if contracts.table(name).log:  # people's work, not made by a stage
            return Log(self, name).files
        if current is None:
            current = self.current(runs)
        if runs is None:
            # A stage that supersedes a table (the label update) has it for itself.
            superseding = [run for run, (_, manifest) in current.items() if name in manifest.get("supersedes", ())]
            runs = superseding[-1:] or None
        files: list[tuple[Path, Part]] = []
        for run, (folder, manifest) in current.items():
            if name in manifest["tables"] and (runs is None or run in runs):
                for part in manifest["tables"][name]["parts"]:
                    others = "first" in part and shard != WHOLE and shard.misses(part["first"], part["last"])
                    if part["rows"] and not others:
                        files.append((folder / name / part["file"], part))
        for path, part in files:
            if fault := fault_of(path, part):
                raise self.owner.error(f"{path} {fault}. {self.owner.advice}")
        return [path for path, _ in files]

    def damaged(self) -> list[Path]:
        """Return the current parts that are missing or not as their manifest says."""
        parts = (pair for run in self.current().values() for pair in parts_of(run.folder, run.manifest))
        return [path for path, part in parts if fault_of(path, part) is not None]


def parts_of(folder: Path, manifest: Manifest) -> list[tuple[Path, Part]]:
    """Return the path of every part of a stage run with what its manifest says of it."""
    return [
        (folder / name / part["file"], part) for name, facts in manifest["tables"].items() for part in facts["parts"]
    ]

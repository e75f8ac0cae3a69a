"""Stage runs of a workspace: which are complete, what each wrote, and which are current.

::

    W/state.json                                   stage run -> fingerprint of its current tables
    W/tables/03_rank/<fingerprint>/ranked_hints/part-00000-of-00002.parquet
    W/tables/03_rank/<fingerprint>/manifest.json   written last: its presence marks the stage as complete
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from quit import contracts
from quit.common.ranges import Range
from quit.common.shapes import read_json
from quit.engine.location import Location, as_json
from quit.errors import WorkspaceError
from quit.store.parts import describe, part_name, write_part


class Runs(Location):
    """A workspace's stage runs."""

    def __init__(self, location: str | Path) -> None:
        super().__init__(location)
        self._manifests: dict[Path, tuple[tuple[int, int, int], dict[str, Any]]] = {}

    @property
    def state(self) -> dict[str, str]:
        """Stage run (``rank``, ``read:minilm-late``) to the fingerprint of its current tables, in pipeline order."""
        return read_json(self.path / "state.json", {})

    def set_current(self, state: Mapping[str, str]) -> None:
        """Make these fingerprints the current ones."""
        if dict(state) != self.state:
            self.put_json("state.json", dict(state))

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
        for path in paths if publish else ():
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
        self.store.add(folder / "manifest.json", as_json({**facts, "tables": tables}))

    def discard(self, folder: Path) -> None:
        """Remove a stage run, its manifest first: what a kill leaves is an unfinished run, not one that lacks parts."""
        self.store.remove([folder / "manifest.json"])
        self.store.remove([path for path, _ in self.store.below(folder)])
        shutil.rmtree(folder, ignore_errors=True)

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


def parts_of(folder: Path, manifest: Mapping[str, Any]) -> list[tuple[Path, dict[str, Any]]]:
    """Return the path of every part of a stage run with what its manifest says of it."""
    return [
        (folder / name / part["file"], part) for name, facts in manifest["tables"].items() for part in facts["parts"]
    ]

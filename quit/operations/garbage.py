"""Tables that nothing uses any more: what other settings, sources or versions of the program once made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from quit.common.files import writing
from quit.engine.planning import last_build
from quit.engine.workspace import Workspace
from quit.errors import QuitError, WorkspaceError

WAIT_SECONDS = 180.0
"""How long to wait for another run on the same workspace."""


@dataclass(frozen=True)
class Unused:
    """The tables of one stage run under one fingerprint. ``changed``: seconds since 1970."""

    run: str
    fingerprint: str
    folder: Path
    files: int
    bytes: int
    complete: bool
    changed: float


def unused(workspace: Workspace, *, keep: int = 0) -> list[Unused]:
    """Return the stage runs that neither the current tables nor the last build need, by stage and age.

    ``keep``: leave so many of each stage, the newest. Releases hold copies of their own, so nothing here is theirs.
    While the last build cannot be planned (a source is gone), unfinished runs stay: they may be its.
    """
    current = {(run.partition(":")[0], fingerprint) for run, fingerprint in workspace.state.items()}
    try:
        current |= {(run.partition(":")[0], mark) for run, mark in last_build(workspace).fingerprints.items()}
        planned = True
    except QuitError:
        planned = False
    unneeded: list[Unused] = []
    for stage in sorted(path for path in (workspace.path / "tables").glob("*_*") if path.is_dir()):
        run = stage.name.partition("_")[2]
        name = run.partition("_")[0]
        tables_of_run = [
            _measure(run, folder)
            for folder in stage.iterdir()
            if folder.is_dir() and (name, folder.name) not in current
        ]
        tables_of_run = [tables for tables in tables_of_run if tables.complete or planned]
        tables_of_run.sort(key=lambda tables: (-tables.changed, tables.fingerprint))
        unneeded += tables_of_run[keep:]
    return unneeded


def collect(workspace: Workspace, tables_of: Sequence[Unused]) -> int:
    """Remove stage runs; returns the bytes freed. Raises :class:`WorkspaceError` where a run holds the workspace."""
    freed = 0
    with workspace.lock(WAIT_SECONDS):
        removable = {tables.folder for tables in unused(workspace)}  # a build may have begun meanwhile
        for tables in tables_of:
            if tables.folder not in removable:
                raise WorkspaceError(f"{tables.folder} is in use again. Look again, then remove.")
            workspace.discard(tables.folder)
            with writing(tables.folder):
                if not any(tables.folder.parent.iterdir()):
                    tables.folder.parent.rmdir()
            freed += tables.bytes
    return freed


def _measure(run: str, folder: Path) -> Unused:
    files = [path for path in folder.rglob("*") if path.is_file()]
    stats = [path.stat() for path in files]
    return Unused(
        run,
        folder.name,
        folder,
        len(files),
        sum(stat.st_size for stat in stats),
        (folder / "manifest.json").is_file(),
        max((stat.st_mtime for stat in stats), default=0.0),
    )

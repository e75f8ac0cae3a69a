"""Tables that nothing uses any more: what other settings, sources or versions of the program once made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quit.common.files import file_states, writing
from quit.common.rows import grouped
from quit.engine.planning import last_build
from quit.engine.workspace import StageRun, Workspace
from quit.errors import QuitError, WorkspaceError

WAIT_SECONDS = 180.0
"""How long to wait for another run on the same workspace."""


@dataclass(frozen=True)
class UnusedTables:
    """The tables of one stage run. ``changed``: seconds since 1970."""

    stage_run: StageRun
    files: int
    bytes: int
    complete: bool
    changed: float


def unused_tables(workspace: Workspace, *, keep: int = 0) -> list[UnusedTables]:
    """Return the stage runs that neither the current tables nor the last build need, by stage and age.

    ``keep``: leave so many of each stage, the newest. Releases hold copies of their own, so nothing here is theirs.
    While the last build cannot be planned (a source is gone), unfinished runs stay: they may be its.
    """
    needed = {*workspace.state.values()}
    try:
        needed |= {*last_build(workspace).fingerprints.values()}
        planned = True
    except QuitError:
        planned = False
    others = (_measured(each) for each in workspace.stage_runs() if each.fingerprint not in needed)
    by_run = grouped((tables.stage_run.run, tables) for tables in others if tables.complete or planned)
    for rows in by_run.values():
        rows.sort(key=lambda tables: (-tables.changed, tables.stage_run.fingerprint))
    return [tables for rows in by_run.values() for tables in rows[keep:]]


def remove_tables(workspace: Workspace, tables: Sequence[UnusedTables]) -> int:
    """Remove stage runs; returns the bytes freed. Raises :class:`WorkspaceError` where a run holds the workspace."""
    with workspace.lock(WAIT_SECONDS):
        removable = {each.stage_run for each in unused_tables(workspace)}  # a build may have begun meanwhile
        for stage_run in (each.stage_run for each in tables):
            folder = stage_run.folder
            if stage_run not in removable:
                raise WorkspaceError(f"{folder} is in use again. Look again, then remove.")
            workspace.discard(folder)
            with writing(folder):
                if not any(folder.parent.iterdir()):
                    folder.parent.rmdir()
    return sum(each.bytes for each in tables)


def _measured(stage_run: StageRun) -> UnusedTables:
    states = file_states(stage_run.folder)
    return UnusedTables(
        stage_run,
        len(states),
        sum(state.st_size for state in states),
        (stage_run.folder / "manifest.json").is_file(),
        max((state.st_mtime for state in states), default=0.0),
    )

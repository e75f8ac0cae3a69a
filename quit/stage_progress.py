"""How far a workspace is, read from its files alone: no source is read, no model loaded, nothing locked. For metrics and `--watch`."""

from __future__ import annotations

import os
import re
import socket
from dataclasses import dataclass, field
from typing import Any

from quit.errors import QuitError
from quit.settings import Settings, load
from quit.stages import STAGES, Stage
from quit.workspace import Workspace

_PART = re.compile(r"part-(\d+)-of-(\d+)\.parquet")


@dataclass(frozen=True)
class Progress:
    """One stage run. ``state``: ``complete``, ``partial`` or ``to do``; ``done`` of ``shards`` (0 where nobody knows yet); ``rows``: of
    its tables, where it is complete; ``rejects``: rows of its table of rejects."""

    number: int
    run: str
    state: str
    done: int = 0
    shards: int = 0
    rows: dict[str, int] = field(default_factory=dict)
    rejects: int = 0


def settings_of(workspace: Workspace) -> Settings | None:
    """Return the settings of the last build, or None where there is none or its profile is gone."""
    known = workspace.build
    try:
        return load(known["profile"], known["overrides"]).settings if known else None
    except QuitError:
        return None


def progress(workspace: Workspace) -> list[Progress]:
    """Return every stage run of the last build in pipeline order."""
    settings, current = settings_of(workspace), workspace.current()
    found = []
    for stage in STAGES:
        if stage.per_reader:
            names = [f"{stage.name}:{one.name}" for one in settings.readers] if settings else []
            keys = names or [key for key in current if key.startswith(f"{stage.name}:")]
        else:
            keys = [stage.name]
        for key in keys:
            if key in current:
                tables = current[key][1]["tables"]
                rows = {name: facts["rows"] for name, facts in tables.items()}
                shards = len(next(iter(tables.values()))["parts"])
                rejects = rows.pop("rejects", 0)
                found.append(Progress(stage.number, key, "complete", shards, shards, rows, rejects))
            elif stage.name != "update":
                done, shards = _begun(workspace, stage, key)
                found.append(Progress(stage.number, key, "partial" if done else "to do", done, shards))
    return found


def _begun(workspace: Workspace, stage: Stage, key: str) -> tuple[int, int]:
    """Return (shards done, shards) of the stage run's newest unfinished folder."""
    below: dict[str, dict[str, float]] = {}
    folder = workspace.folder(key, stage.number, "x").parent
    for path, when in workspace.store.below(folder):
        fingerprint, _, rest = path.relative_to(folder).as_posix().partition("/")
        below.setdefault(fingerprint, {})[rest] = when
    first = f"{stage.outputs[0]}/"
    begun = [
        {name.removeprefix(first): when for name, when in files.items() if name.startswith(first)} | {"": 0.0}
        for files in below.values()
        if "manifest.json" not in files
    ]
    newest = max(range(len(begun)), key=lambda place: (max(begun[place].values()), len(begun[place])), default=None)
    if newest is None:
        return 0, 0
    files = [files for files in below.values() if "manifest.json" not in files][newest]
    found = {name: match for name in begun[newest] if (match := _PART.fullmatch(name))}
    if not found:
        return 0, 0
    shards = found[max(found, key=lambda name: begun[newest][name])].group(2)
    done = sum(
        all(f"{output}/{name}" in files for output in stage.outputs)
        for name, match in found.items()
        if match.group(2) == shards
    )
    return done, int(shards)


def lock_holder(workspace: Workspace) -> dict[str, Any] | None:
    """Return who holds a workspace (``pid``, ``host``, ``since``), or None. A holder on this machine that is gone holds nothing."""
    found = workspace.lock_info
    if found is None:
        return None
    try:
        if found["host"] == socket.gethostname():
            os.kill(int(found["pid"]), 0)
    except (ProcessLookupError, ValueError, KeyError, TypeError):
        return None
    except PermissionError:
        pass  # it is there, and another user's
    except OSError:
        return None
    return found

"""Upgrades of a workspace's layout, step by step from the version it has to the version this program writes.

Most changes need none. A stage's tables follow their schema by fingerprint: a program whose schema differs builds
them again. A log (reviews, overrides) only ever gains columns that may be null, and its older parts are read as if they
had them. A step is for what remains: files that move, or mean something else.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

import schemas
from quit.common.files import is_url
from quit.engine.parts import UNREADABLE
from quit.engine.workspace import Workspace
from quit.errors import InputError, WorkspaceError


@dataclass(frozen=True)
class Step:
    """One upgrade, from a version to the next; ``run`` may be stopped anywhere and run again."""

    doc: str
    run: Callable[[Path], None]


STEPS: Mapping[int, Step] = {}
"""The version that a step starts from -> the step. There is none yet: version 1 is the first."""


@dataclass(frozen=True)
class Outcome:
    """``steps`` in order (carried out, or to do in a dry run), and ``logs``: log -> number of parts with fewer columns
    than today's."""

    found: int
    wanted: int
    steps: tuple[str, ...]
    logs: Mapping[str, int]


def migrate(
    place: str | Path, *, dry_run: bool = False, wait: float = 180.0, steps: Mapping[int, Step] = STEPS
) -> Outcome:
    """Bring a workspace to :data:`schemas.WORKSPACE_FORMAT`; a kill in the middle loses nothing, run it again.

    Raises :class:`WorkspaceError` for what is no workspace, a newer program's, or one without a step.
    """
    workspace = Workspace.at(place)
    current, wanted = workspace.format, schemas.WORKSPACE_FORMAT
    missing = [version for version in range(current, wanted) if version not in steps]
    if missing:
        raise WorkspaceError(
            f"{workspace} has format {current}, and this program knows no step from {missing[0]} to {missing[0] + 1}. "
            "Use the program that made it, or an older one of this line that has the step."
        )
    if current < wanted and is_url(workspace.address):
        raise InputError(f"{workspace} is behind a URL: copy it to a folder, migrate that, and copy it back.")
    todo = [(version, steps[version]) for version in range(current, wanted)]
    if todo and not dry_run:
        with workspace.lock(wait):
            for version, step in todo:
                step.run(workspace.path)
                marker = json.loads((workspace.path / "workspace.json").read_text(encoding="utf-8"))
                workspace.put_json("workspace.json", {**marker, "format": version + 1})
    return Outcome(
        current,
        wanted,
        tuple(f"{version} -> {version + 1}: {step.doc}" for version, step in todo),
        _old_logs(workspace.path),
    )


def _old_logs(path: Path) -> dict[str, int]:
    old_parts = {}
    for name, contract in schemas.TABLES.items():
        parts = sorted((path / name).glob("part-*.parquet")) if contract.grows else []
        old_parts[name] = sum(_columns(part) != contract.schema.names for part in parts)
    return {name: count for name, count in old_parts.items() if count}


def _columns(part: Path) -> list[str]:
    try:
        return pq.read_schema(part).names
    except UNREADABLE as error:
        raise WorkspaceError(f"{part} cannot be read: {error}. Restore it from a backup first.") from error

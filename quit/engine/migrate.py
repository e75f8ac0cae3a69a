"""Upgrades of a workspace's layout, step by step from the version it has to the version this program writes.

Most changes need none. A stage's tables follow their schema by fingerprint: a program whose schema differs builds
them again. A log (reviews, overrides) only ever gains columns that may be null, and its older parts are read as if they
had them. A step is for what remains: files that move, or that keep the same rows in another form. A folder is upgraded
when it is opened; ``quit workspace migrate --dry-run`` says what would be done.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import schemas
from quit.common.files import is_url, write_json
from quit.common.progress import advance, note
from quit.common.shapes import read_json
from quit.engine.parts import UNREADABLE, damage, describe, read_part, write_part
from quit.engine.workspace import Workspace
from quit.errors import InputError, WorkspaceError
from quit.stages.answers import number_answers
from quit.store.folder import FolderStore


@dataclass(frozen=True)
class Step:
    """One upgrade, from a version to the next; ``run`` may be stopped anywhere and run again."""

    doc: str
    run: Callable[[Path], None]


def _answers_by_number(path: Path) -> None:
    """Write the answers of every reader's runs, finished or not, by number: each run beside the former one, which it
    then replaces. Their fingerprints stay, so nothing that rests on them is made again, and no model is asked."""
    for half_done in sorted((path / "tables").glob(f"*_read_*/*{_FORMER}")):  # a killed upgrade: replaced, not removed
        run = half_done.with_name(half_done.name.removesuffix(_FORMER))
        if not run.exists():
            run.with_name(run.name + _NUMBERED).rename(run)
        shutil.rmtree(half_done)
    for unfinished in (path / "tables").glob(f"*_read_*/*{_NUMBERED}"):
        shutil.rmtree(unfinished)
    folders = sorted((path / "tables").glob("*_read_*/*"))
    for folder in folders:
        if (folder / "answers").is_dir() and not (folder / "distinct_answers").is_dir():
            numbered, former = (folder.with_name(folder.name + suffix) for suffix in (_NUMBERED, _FORMER))
            _number_run(folder, numbered, FolderStore(path))
            folder.rename(former)
            numbered.rename(folder)
            shutil.rmtree(former)
        advance("answers by number", 1, len(folders))


_NUMBERED, _FORMER = ".numbered", ".former"


def _number_run(folder: Path, target: Path, store: FolderStore) -> None:
    """Write one reader's run by number to another folder. A part that is not what was written is left out, and the run
    is then unfinished: the next build makes that part again."""
    manifest = read_json(folder / "manifest.json")
    listed = {part["file"]: part for part in manifest["tables"]["answers"]["parts"]} if manifest else {}
    whole = True
    for part in sorted((folder / "answers").glob("part-*.parquet")):
        if damage(part, listed.get(part.name)) is not None:
            whole = False
            continue
        for name, rows in number_answers(read_part(part)).items():
            store.add(target / name / part.name, partial(write_part, rows=rows))
    if manifest is None or not whole or not all((target / "answers" / name).exists() for name in listed):
        return
    tables: dict[str, Any] = {}
    for name in ("answers", "distinct_answers"):
        parts = [describe(target / name / part, name) for part in listed]
        tables[name] = {"rows": sum(part["rows"] for part in parts), "parts": parts}
    write_json(target / "manifest.json", {**manifest, "tables": tables})


STEPS: Mapping[int, Step] = {1: Step("answers are kept by number; no model is asked", _answers_by_number)}
"""The version that a step starts from -> the step."""


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
        raise InputError(
            f"{workspace} has format {current}, this program's is {wanted}. It is behind a URL: copy it to a folder, "
            "run quit workspace migrate there, and copy that to a new URL."
        )
    todo = [(version, steps[version]) for version in range(current, wanted)]
    if todo and not dry_run:
        with workspace.lock(wait, note):
            for version, step in todo:
                if workspace.format > version:  # another process was faster
                    continue
                note(f"{workspace}: from format {version} to {version + 1}: {step.doc}.", loud=True)
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

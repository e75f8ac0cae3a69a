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

import pyarrow as pa
import pyarrow.parquet as pq

import schemas
from quit.common.files import is_url, sync, write_json
from quit.common.progress import advance, note
from quit.common.shapes import read_json
from quit.engine.damage import BEFORE_DAMAGE
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
    """Rewrite the answers of every reader's runs, finished or not, by number: each run is written to
    ``<run>.numbered``, then swapped in. Fingerprints stay, so nothing that rests on the answers is made again, and no
    model is asked."""
    for old in sorted((path / "tables").glob(f"*_read_*/*{_OLD}")):  # stopped after the swap began
        run = old.with_name(old.name.removesuffix(_OLD))
        if not run.exists():
            old.with_name(run.name + _NUMBERED).rename(run)
        shutil.rmtree(old)
    for unfinished in (path / "tables").glob(f"*_read_*/*{_NUMBERED}"):
        shutil.rmtree(unfinished)
    runs = sorted((path / "tables").glob("*_read_*/*"))
    for run in runs:
        if (run / "answers").is_dir() and not (run / "distinct_answers").is_dir():
            numbered, old = (run.with_name(run.name + suffix) for suffix in (_NUMBERED, _OLD))
            _number_run(run, numbered, FolderStore(path))
            run.rename(old)
            numbered.rename(run)
            sync(run.parent)  # a power failure finds either of the two
            shutil.rmtree(old)
        advance("answers by number", 1, len(runs))


_NUMBERED, _OLD = ".numbered", ".old"


def _number_run(folder: Path, target: Path, store: FolderStore) -> None:
    """Write one reader's run by number to another folder. A part that is not what was written is left out, and the run
    is then unfinished: the next build makes that part again, and what rests on it."""
    try:
        manifest = read_json(folder / "manifest.json")
    except WorkspaceError:
        manifest = None  # as a build takes it: every part is looked at by itself
    listed = {part["file"]: part for part in manifest["tables"]["answers"]["parts"]} if manifest else {}
    tables = {name: target / name for name in ("answers", "distinct_answers")}
    for path in tables.values():
        path.mkdir(parents=True)
    names = sorted(path.name for path in (folder / "answers").glob("part-*.parquet"))
    for name in names:
        for table, rows in _numbered(folder / "answers" / name, listed.get(name)).items():
            store.add(tables[table] / name, partial(write_part, rows=rows))
    lost = [name for name in {*names, *listed} if not (tables["answers"] / name).exists()]
    if lost:
        note(f"{folder}: {len(lost)} parts are damaged or missing. The next build makes them again.", loud=True)
    if manifest and lost:
        write_json(target / BEFORE_DAMAGE, manifest)
    elif manifest:
        parts = {table: [describe(path / name, table) for name in listed] for table, path in tables.items()}
        facts = {name: {"rows": sum(part["rows"] for part in of), "parts": of} for name, of in parts.items()}
        write_json(target / "manifest.json", {**manifest, "tables": facts})
    elif (folder / BEFORE_DAMAGE).exists():
        write_json(target / BEFORE_DAMAGE, read_json(folder / BEFORE_DAMAGE))
    for path in (*tables.values(), target):
        sync(path)


def _numbered(part: Path, listed: Mapping[str, Any] | None) -> Mapping[str, pa.Table]:
    """Return a part's rows by number; nothing where it is not what was written."""
    try:
        return {} if damage(part, listed) is not None else number_answers(read_part(part))
    except (WorkspaceError, ValueError, KeyError):
        return {}


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

    Raises :class:`WorkspaceError` for what is not a workspace, a newer program's, or one without a step, and
    ``InputError`` for one behind a URL.
    """
    workspace = Workspace.at(place)
    current, wanted = workspace.format, schemas.WORKSPACE_FORMAT
    missing = [version for version in range(current, wanted) if version not in steps]
    if missing:
        raise WorkspaceError(
            f"{workspace} has format {current}, and this program knows no step from {missing[0]} to {missing[0] + 1}. "
            "Use the program that made it, or an older version that has this step."
        )
    if current < wanted and is_url(workspace.address):
        raise InputError(
            f"{workspace} has format {current}, this program's is {wanted}. It is behind a URL: copy it to a folder, "
            "run quit workspace migrate there, and copy that to a new URL."
        )
    todo = [(version, steps[version]) for version in range(current, wanted)]
    if todo and not dry_run:
        for version, step in todo:
            note(f"{workspace} is upgraded from format {version} to {version + 1}: {step.doc}.", loud=True)
        with workspace.lock(wait, partial(note, loud=True)):
            for version, step in todo:
                if workspace.format > version:  # another process was faster
                    continue
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

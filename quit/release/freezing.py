"""What every release is frozen with: a folder that appears whole or not at all, its name, and ``release.json``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from quit.common.checksums import file_checksum
from quit.common.files import sync, write_json, writing
from quit.common.folders import aside, locked, put_in_place
from quit.dataset.description import Content, Counts, Description, TableEntry
from quit.dataset.files import TableFiles
from quit.dataset.release import (
    DESCRIPTION,
    LAYOUT,
    Release,
    checksum_of,
    content_id_of,
    is_release,
    open_release,
    verify,
)
from quit.dataset.statistics import statistics_of
from quit.errors import GateError, InputError, SettingsError
from quit.evaluate.labels import SPLITS
from quit.export.files import MADE_BY
from quit.models.protocols import Encoder
from quit.release.gates import GateResult
from quit.text import answers
from quit.text.words import counted

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_SIMILARITY_DIGITS = 3  # an estimate with a standard error of about 0.01; further digits depend on the machine


@dataclass(frozen=True)
class Created:
    """Result of ``create``. ``new``: false where the same release was already there; ``note``: how the existing release
    differs from the requested one, in a sentence, or empty."""

    release: Release
    new: bool
    note: str = ""


def put(target: Path, make: Callable[[Path], Description], newest: Release | None = None) -> Created:
    """Make a release in a hidden folder and move it into place, or find that it, or ``newest``, is there already.

    ``make`` writes the tables below the folder it is given and returns ``release.json``. Raises as
    :func:`quit.release.create.create` does.
    """
    with writing(target), aside(target) as folder:
        facts = make(folder)
        if newest is not None and newest.content_id == facts["content_id"]:
            return Created(newest, False, _differences_outside_content(newest, facts))
        write_json(folder / DESCRIPTION, facts)
        for path in sorted(folder.rglob("*")):
            sync(path)
        with locked(target.parent):
            if is_release(target):
                existing = _same(target, facts)
                return Created(existing, False, _differences_outside_content(existing, facts))
            put_in_place(folder, target)
    return Created(open_release(target), True)


def refuse_failed(results: Sequence[GateResult]) -> None:
    """Raise ``GateError`` where a gate is neither passed nor waived."""
    failed = [result for result in results if result.state == "failed"]
    if not failed:
        return
    reasons = "; ".join(f"{gate.gate} ({gate.violations}, such as {gate.examples[0]})" for gate in failed)
    raise GateError(
        f"The release was refused by {counted(len(failed), 'gate')}: {reasons}. See: quit release check. "
        "Where it must be so, waive it with a reason, which is published with the data: --waive GATE='reason' (Python: "
        "waive={GATE: reason})."
    )


def check_target(target: Path, name: str) -> None:
    """Raise ``SettingsError`` for a name that cannot be one, ``InputError`` where the target holds anything else."""
    if not _NAME.fullmatch(name):
        raise SettingsError(
            f"{name!r} cannot name a release: use letters, digits, dots, dashes and underscores, such as v1."
        )
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise InputError(f"{target} exists and is not a folder: choose another path.")
    if target.is_dir() and any(target.iterdir()) and not is_release(target):
        raise InputError(f"{target} exists and is not a release: choose another path, or remove it first.")


def _same(target: Path, facts: Description) -> Release:
    existing = open_release(target)
    if existing.content_id == facts["content_id"] and existing.name != facts["name"]:
        raise InputError(
            f"{target} already holds this release under the name {existing.name!r}, not {facts['name']!r}. A release "
            "is never changed: use its name, or choose another folder."
        )
    if existing.content_id != facts["content_id"]:
        raise InputError(
            f"{target} already holds the release {existing.name!r} with other content ({existing.content_id[:12]}, now "
            f"{facts['content_id'][:12]}). A release is never changed: choose another name, and compare them with "
            "quit release diff."
        )
    return verify(target)


def _differences_outside_content(existing: Release, facts: Description) -> str:
    """Say which facts outside the content differ from the release that exists, which keeps its own."""
    notes = {
        "card": "The release keeps the card of its build; use quit export --card FILE.",
        "verification": "The release keeps its figures of annotators; a release of another name has the new ones.",
    }
    return " ".join(note for key, note in notes.items() if existing.facts.get(key) != facts.get(key))


def table_path(folder: Path, table: str) -> Path:
    """Return where a release in ``folder`` has a table."""
    return folder / "tables" / f"{table}.parquet"


def entry_of(folder: Path, table: str, rows: int) -> TableEntry:
    """Return what ``release.json`` says of a table's file."""
    path = table_path(folder, table)
    file = path.relative_to(folder).as_posix()
    return {"file": file, "sha256": file_checksum(path), "bytes": path.stat().st_size, "rows": rows}


def facts_of(
    name: str,
    content: Content,
    files: TableFiles,
    results: Sequence[GateResult],
    encoder: Encoder | None,
    **beside: Mapping[str, Any] | None,
) -> Description:
    """Return ``release.json``; ``encoder``: measures the semantic similarity; ``beside``: what is no part of the
    content, ``card`` (what the publisher said), ``verification`` (what annotators did) and ``replies`` (which servers
    were asked)."""
    facts = {
        "made_by": MADE_BY,
        "layout": LAYOUT,
        "answer_keys": answers.VERSION,
        "name": name,
        "content_id": content_id_of(content),
        "content": content,
        "counts": _counts(files),
        "statistics": _statistics(files, encoder),
        "gates": [result.to_dict() for result in results],
        **{key: dict(value) for key, value in beside.items() if value},
    }
    return cast(Description, {**facts, "checksum": checksum_of(facts)})


def _counts(files: TableFiles) -> Counts:
    splits = files.read("splits", ["split"])["split"].to_pylist()
    questions = {split: splits.count(split) for split in SPLITS}
    return {"questions": {**questions, "all": len(splits)}, "passages": files.rows("passages")}


def _statistics(files: TableFiles, encoder: Encoder | None) -> dict[str, Any]:
    figures = statistics_of(files, encoder).to_dict()
    for row in figures["summary"]:
        for name in ("semantic_similarity", "similarity_error"):
            if row[name] is not None:
                row[name] = round(row[name], _SIMILARITY_DIGITS)
        if files.imported:
            row["gold_answer_words"] = None  # published files do not tell gold answers from others
    return figures

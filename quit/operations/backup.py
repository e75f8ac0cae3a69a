"""Backups of a workspace: one tar file of what cannot be made again, or not cheaply, each file with its checksum.

::

    reviews/part-00001.parquet       ... every file, in the order of their names
    tables/01_collect/...
    backup.json                      last: what lacks it was cut short

Parquet is compressed already, so the tar is not. The same workspace gives the same bytes.
"""

from __future__ import annotations

import glob
import hashlib
import io
import json
import os
import shutil
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

from pydantic import BaseModel, ValidationError

from quit import __version__
from quit.common.files import is_url, json_bytes, remove_leftovers, replacing, writing
from quit.common.progress import advance
from quit.common.shapes import first_fault
from quit.engine.workspace import Workspace
from quit.errors import InputError, WorkspaceError

FORMAT = 1
"""Version of a backup's layout. A program refuses a backup whose number is higher than its own."""
DESCRIPTION = "backup.json"
_CHUNK = 1 << 20
_NEVER = ("lock", "lock.json", "reviews/sync.json")
"""``sync.json`` may already tell of a pull whose part came too late for the backup; without it the next pull reads
everything."""
_LEFT_OUT = (PurePosixPath("reviews/server"), PurePosixPath("reviews/queue"))
"""Accounts and secrets of a local annotation server; events that a pull reads and removes at any time."""


@dataclass(frozen=True)
class Backup:
    """What a backup holds. ``bytes``: without tar's own; ``old``: fingerprints left out; ``sources``: ``kind:path``."""

    path: Path
    files: int
    bytes: int
    old: int
    sources: tuple[str, ...]

    @property
    def missing_sources(self) -> tuple[str, ...]:
        """The sources of the last build that are not where they were: they are no part of a backup."""
        return tuple(text for text in self.sources if not Path(text.partition(":")[2]).exists())


def backup(
    workspace: Workspace,
    target: Path,
    *,
    everything: bool = False,
    wait: float = 180.0,
) -> Backup:
    """Write a workspace to the tar file ``target``, readable by its owner alone.

    Current tables, logs, reviews, releases and settings go in; with ``everything`` tables of older fingerprints too.
    Never in it: locks, what killed runs left, how far the last pull got, and accounts, secrets and queue of a local
    annotation server. Waits up to ``wait`` seconds for a running build. Raises :class:`WorkspaceError` where the
    workspace is held longer, a file is damaged, or the disk refuses, and ``InputError`` where ``target`` exists.
    """
    if target.exists():
        raise InputError(f"{target} exists. A backup replaces nothing: name another file.")
    with workspace.lock(wait):
        remove_leftovers(target.parent, f"{glob.escape(target.name)}.*")
        workspace.bring_folder(workspace.path / "releases")
        if damaged := workspace.damaged():
            raise WorkspaceError(
                f"{damaged[0]} is damaged: it is missing or has not the checksum of its manifest. Build again (or "
                "restore it), then back up."
            )
        names, old = _chosen(workspace, everything)
        total = sum((workspace.path / name).stat().st_size for name in names)
        files: dict[str, dict[str, Any]] = {}
        with (
            writing(target),
            replacing(target, private=True) as temporary,
            tarfile.open(temporary, mode="w:", format=tarfile.PAX_FORMAT) as tar,
        ):
            for name in names:
                path = workspace.path / name
                with path.open("rb") as file:
                    size = os.fstat(file.fileno()).st_size
                    files[name] = {"bytes": size, "sha256": _add(tar, name, size, file)}
                advance("files", size, total)
            sources = list((workspace.build or {}).get("sources", ()))
            facts = {"format": FORMAT, "program": __version__, "sources": sources, "old": old, "files": files}
            raw = json_bytes(facts)
            _add(tar, DESCRIPTION, len(raw), io.BytesIO(raw))
        return _backup_of(target, facts)


def restore(archive: Path, folder: Path) -> Backup:
    """Make the workspace ``folder`` from a backup, whole or not at all: every file is compared with its checksum first.

    Raises ``InputError`` for what is not a backup, is cut short, damaged, or a newer program's, and
    :class:`WorkspaceError` where ``folder`` exists and is not empty, or the disk refuses.
    """
    if is_url(folder):
        raise InputError(
            f"{folder}: a backup is restored to a folder of this machine. Name one, and copy it where it belongs."
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise WorkspaceError(f"{folder} exists and is not empty. A restore replaces nothing: name a new folder.")
    staging = folder.with_name(f".{folder.name}.restoring")
    shutil.rmtree(staging, ignore_errors=True)
    try:
        with writing(staging):
            facts = _unpack(archive, staging)
            Workspace.open(staging, upgrade=False)
            if folder.is_dir():
                folder.rmdir()
            os.replace(staging, folder)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return _backup_of(folder, facts)


def _backup_of(path: Path, facts: Mapping[str, Any]) -> Backup:
    files = facts["files"].values()
    return Backup(path, len(files), sum(file["bytes"] for file in files), facts["old"], tuple(facts["sources"]))


def _chosen(workspace: Workspace, everything: bool) -> tuple[list[str], int]:
    """Return the names of the files to keep, sorted, and how many older fingerprints are left out."""
    current = {folder for folder, _ in workspace.current().values()}
    names, old = [], set()
    for path in sorted(workspace.path.rglob("*")):
        below = path.relative_to(workspace.path)
        name = below.as_posix()
        if path.is_symlink() or not path.is_file() or name in _NEVER or path.name == "lock":
            continue
        if any(part.startswith(".") for part in below.parts) or {*_LEFT_OUT} & {*PurePosixPath(name).parents}:
            continue  # what killed runs left has names with a dot
        if below.parts[0] == "tables":
            folder = workspace.path.joinpath(*below.parts[:3])
            if folder not in current and not everything:
                old.add(folder)
                continue
        names.append(name)
    return sorted(names), len(old)


def _add(tar: tarfile.TarFile, name: str, size: int, file: IO[bytes]) -> str:
    """Add the first ``size`` bytes of a file and return their checksum."""
    entry = tarfile.TarInfo(name)  # no owner, no time: the same workspace gives the same bytes
    entry.size, entry.mode = size, 0o644
    reader = _Hashing(file)
    tar.addfile(entry, reader)
    return reader.digest.hexdigest()


class _Hashing:
    """A file that hashes what is read from it."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.digest = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        """Read and hash."""
        data = self._file.read(size)
        self.digest.update(data)
        return data


def _unpack(archive: Path, staging: Path) -> Mapping[str, Any]:
    unpacked: dict[str, dict[str, Any]] = {}
    facts: Mapping[str, Any] | None = None
    try:
        total = archive.stat().st_size
        with tarfile.open(archive, "r:") as tar:
            for entry in tar:
                if facts is not None:
                    raise InputError(
                        f"{archive} has files after {DESCRIPTION}: it is not a backup as this program writes them."
                    )
                source = tar.extractfile(entry) if entry.isreg() else None
                if source is None or not _safe(entry.name) or entry.name in unpacked:
                    fault = "twice" if entry.name in unpacked else "which no backup holds"
                    raise InputError(f"{archive} holds {entry.name!r}, {fault}. Nothing was restored.")
                if entry.name == DESCRIPTION:
                    facts = _described(archive, source.read())
                    continue
                target = staging.joinpath(*PurePosixPath(entry.name).parts)
                target.parent.mkdir(parents=True, exist_ok=True)
                reader = _Hashing(source)
                with target.open("wb") as file:
                    shutil.copyfileobj(reader, file, _CHUNK)
                unpacked[entry.name] = {"bytes": entry.size, "sha256": reader.digest.hexdigest()}
                advance("files", entry.size, total)
    except FileNotFoundError:
        raise InputError(f"{archive} does not exist.") from None
    except tarfile.TarError as error:
        raise InputError(f"{archive} is not a backup, or was cut short: {error}. Nothing was restored.") from error
    if facts is None:
        raise InputError(f"{archive} has no {DESCRIPTION}: it is not a backup, or was cut short. Nothing was restored.")
    wrong = sorted(name for name in {*unpacked, *facts["files"]} if unpacked.get(name) != facts["files"].get(name))
    if wrong:
        raise InputError(
            f"{archive} is damaged: {len(wrong)} files are not what was backed up, first {wrong[0]}. Nothing was "
            "restored."
        )
    return facts


def _described(archive: Path, raw: bytes) -> Mapping[str, Any]:
    try:
        facts = json.loads(raw, object_pairs_hook=_without_repetition)
        number = _Numbered.model_validate(facts, strict=True).format
        if number <= FORMAT:
            _Description.model_validate(facts, strict=True)
    except ValidationError as error:
        raise InputError(f"{archive}: {DESCRIPTION}: {first_fault(error)}. Nothing was restored.") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{archive}: {DESCRIPTION} cannot be read: {error}. Nothing was restored.") from error
    if number > FORMAT:
        raise InputError(
            f"{archive} has format {number}; this program knows up to {FORMAT}. Use version "
            f"{facts.get('program', '?')} or newer."
        )
    return facts


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise ValueError("a key is there twice")
    return value


class _Numbered(BaseModel):
    format: int


class _File(BaseModel):
    bytes: int
    sha256: str


class _Description(BaseModel):
    files: dict[str, _File]
    sources: list[str]
    old: int


def _safe(name: str) -> bool:
    """Whether a name stays below the folder it is unpacked into."""
    path = PurePosixPath(name)
    return (
        bool(path.parts) and not path.is_absolute() and ".." not in path.parts and "\\" not in name and ":" not in name
    )

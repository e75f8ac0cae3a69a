"""Backups of a workspace: one tar file of what cannot be made again, or not cheaply, and ``SHA256SUMS`` as its last
member (``tar -xf W.tar && sha256sum -c SHA256SUMS`` checks it too).

Parquet is compressed already, so the tar is not. The same workspace gives the same bytes.
"""

from __future__ import annotations

import glob
import hashlib
import io
import os
import shutil
import tarfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from quit.common.files import remove_leftovers, replacing, writing
from quit.common.progress import advance
from quit.engine.workspace import Workspace
from quit.errors import InputError, WorkspaceError

SUMS = "SHA256SUMS"
_NEVER = ("lock", "lock.json", "reviews/sync.json")
"""``sync.json`` may already tell of a pull whose part came too late for the backup; without it the next pull reads
everything."""
_LEFT_OUT = PurePosixPath("reviews/server")
"""Accounts and secrets of a local annotation server."""


@dataclass(frozen=True)
class Backup:
    """Contents of a backup. ``bytes``: without tar's own; ``old``: fingerprints left out."""

    files: int
    bytes: int
    old: int = 0


def backup(
    workspace: Workspace,
    target: Path,
    *,
    everything: bool = False,
    wait: float = 180.0,
) -> Backup:
    """Write a workspace to the tar file ``target``, readable only by its owner.

    Current tables, logs, reviews, releases and settings go in; with ``everything`` tables of older fingerprints too.
    Never in it: locks, what killed runs left, how far the last pull got, and accounts and secrets of a local annotation
    server. Waits up to ``wait`` seconds for a running build. Raises :class:`WorkspaceError` where the
    workspace is held longer, a file is damaged, or the disk refuses, and ``InputError`` where ``target`` exists.
    """
    if target.exists():
        raise InputError(f"{target} exists. A backup replaces nothing: name another file.")
    with workspace.lock(wait):
        remove_leftovers(target.parent, f"{glob.escape(target.name)}.*")
        if damaged := workspace.damaged():
            raise WorkspaceError(
                f"{damaged[0]} is damaged: it is missing or has not the checksum of its manifest. Build again (or "
                "restore it), then back up."
            )
        names, old = _chosen(workspace, everything)
        total = sum((workspace.path / name).stat().st_size for name in names)
        sums: list[str] = []
        with (
            writing(target),
            replacing(target, private=True) as temporary,
            tarfile.open(temporary, mode="w:", format=tarfile.PAX_FORMAT) as tar,
        ):
            for name in names:
                with (workspace.path / name).open("rb") as file:
                    entry = tarfile.TarInfo(name)  # no owner, no time: the same workspace gives the same bytes
                    entry.size = os.fstat(file.fileno()).st_size
                    sums.append(f"{hashlib.file_digest(file, 'sha256').hexdigest()}  {name}\n")
                    file.seek(0)
                    tar.addfile(entry, file)
                advance("files", entry.size, total)
            raw = "".join(sums).encode()
            entry = tarfile.TarInfo(SUMS)
            entry.size = len(raw)
            tar.addfile(entry, io.BytesIO(raw))
        return Backup(len(names), total, old)


def restore(archive: Path, folder: Path) -> Backup:
    """Make the workspace ``folder`` from a backup, whole or not at all: every unpacked file is compared with its
    checksum before the folder gets its name.

    Raises ``InputError`` for what is not a backup, is cut short or damaged, and :class:`WorkspaceError` where
    ``folder`` exists and is not empty, the workspace is a newer program's, or the disk refuses.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir()) or folder.samefile(".")):
        fault = "is the current folder" if folder.samefile(".") else "exists and is not empty"
        raise WorkspaceError(f"{folder} {fault}. A restore replaces nothing: name a new folder.")
    staging = folder.with_name(f".{folder.name}.restoring")
    shutil.rmtree(staging, ignore_errors=True)
    try:
        with writing(staging):
            restored = _unpack(archive, staging)
            Workspace.open(staging)
            if folder.is_dir():
                folder.rmdir()
            os.replace(staging, folder)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return restored


def _chosen(workspace: Workspace, everything: bool) -> tuple[list[str], int]:
    """Return the names of the files to keep, sorted, and how many older fingerprints are left out."""
    current = {folder for folder, _ in workspace.current().values()}
    names, old = [], set()
    for path in sorted(workspace.path.rglob("*")):
        below = path.relative_to(workspace.path)
        name = below.as_posix()
        if path.is_symlink() or not path.is_file() or name in _NEVER or path.name == "lock":
            continue
        if any(part.startswith(".") for part in below.parts) or _LEFT_OUT in PurePosixPath(name).parents:
            continue  # what killed runs left has names with a dot
        if below.parts[0] == "tables":
            folder = workspace.path.joinpath(*below.parts[:3])
            if folder not in current and not everything:
                old.add(folder)
                continue
        names.append(name)
    return sorted(names), len(old)


def _unpack(archive: Path, staging: Path) -> Backup:
    checksums: dict[str, str] = {}
    sums: list[str] = []
    unpacked = 0
    try:
        total = archive.stat().st_size
        with tarfile.open(archive, "r:") as tar:
            for entry in tar:
                source = tar.extractfile(entry) if entry.isreg() else None
                if source is None or not _safe(entry.name) or entry.name in checksums:
                    fault = "twice" if entry.name in checksums else "which no backup holds"
                    raise InputError(f"{archive} holds {entry.name!r}, {fault}. Nothing was restored.")
                if entry.name == SUMS:
                    sums = source.read().decode(errors="replace").splitlines()
                    continue
                target = staging.joinpath(*PurePosixPath(entry.name).parts)
                target.parent.mkdir(parents=True, exist_ok=True)
                with target.open("wb+") as file:
                    shutil.copyfileobj(source, file)
                    file.seek(0)
                    checksums[entry.name] = hashlib.file_digest(file, "sha256").hexdigest()
                unpacked += entry.size
                advance("files", entry.size, total)
    except FileNotFoundError:
        raise InputError(f"{archive} does not exist.") from None
    except tarfile.TarError as error:
        raise InputError(f"{archive} is not a backup, or was cut short: {error}. Nothing was restored.") from error
    if not sums:
        raise InputError(f"{archive} has no {SUMS}: it is not a backup, or was cut short. Nothing was restored.")
    expected = {name: checksum for checksum, _, name in (line.partition("  ") for line in sums)}
    wrong = sorted(name for name in {*checksums, *expected} if checksums.get(name) != expected.get(name))
    if wrong:
        raise InputError(
            f"{archive} is damaged: {len(wrong)} files are not what was backed up, first {wrong[0]}. Nothing was "
            "restored."
        )
    return Backup(len(checksums), unpacked)


def _safe(name: str) -> bool:
    """Whether a name stays below the folder it is unpacked into."""
    path = PurePosixPath(name)
    return (
        bool(path.parts) and not path.is_absolute() and ".." not in path.parts and "\\" not in name and ":" not in name
    )

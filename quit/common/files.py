"""Files that are there whole or not at all: written under a temporary name, flushed to disk, moved into place."""

from __future__ import annotations

import errno
import json
import os
import re
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Set
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from quit.errors import InputError, WorkspaceError

LEFTOVER = re.compile(r"\..+\.\d+-\d+-[0-9a-f]{8}\.tmp")
"""Names of the temporary files that :func:`replacing` makes; a killed run leaves some."""

_PROCESS = uuid.uuid4().hex[:8]


def sync(path: Path) -> None:
    """Have a file, or the names in a folder, written to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def writing(target: Path) -> Iterator[None]:
    """Turn a full disk, no permission, no such folder into one clear line (:class:`WorkspaceError`), which also names a
    file elsewhere that is at fault."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise WorkspaceError(
                f"The disk is full: could not write {target}. Free some space and run the same command again; what is "
                "done stays done."
            ) from error
        culprit = Path(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes) else target
        is_here = culprit.parent == target.parent or culprit.is_relative_to(target) or target.is_relative_to(culprit)
        reason = f"{'' if is_here else f'{culprit}: '}{error.strerror or error}"
        raise WorkspaceError(f"Could not write {target}: {reason}. Check the path and its permissions.") from error


def temporary_of(target: Path) -> Path:
    """Return where this thread writes what is to become ``target``: nobody else does, on this or another machine."""
    return target.parent / f".{target.name}.{os.getpid()}-{threading.get_native_id()}-{_PROCESS}.tmp"


@contextmanager
def replacing(
    target: Path, *, private: bool = False, place: Callable[[Path, Path], object] = os.replace
) -> Iterator[Path]:
    """Give a temporary path beside ``target`` to write to; on leaving, flush it and move it into place.

    ``private``: nobody but the owner can ever read it. ``place``: how it gets its name; ``os.link`` refuses one that is
    taken. An error removes the temporary file and leaves ``target`` as it was. Raises what writing to disk raises.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = temporary_of(target)
    try:
        if private:
            os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))
        yield temporary
        sync(temporary)
        place(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def files_below(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder, except those that are being written."""
    return (path for path in folder.rglob("*") if path.is_file() and not LEFTOVER.fullmatch(path.name))


def file_states(folder: Path) -> list[os.stat_result]:
    """Return sizes and times of :func:`files_below`, without files that go meanwhile."""
    states = []
    for path in files_below(folder):
        with suppress(FileNotFoundError):
            states.append(path.stat())
    return states


def files_to_read(folder: Path, above: Set[str] = frozenset()) -> Iterator[Path]:
    """Yield the files of a folder that others wrote: links are followed, except to a folder that holds them. A link to
    nothing is one, so that who opens it says so. Raises ``OSError`` for a folder that cannot be read."""
    here = os.path.realpath(folder)
    for path in () if here in above else folder.iterdir():
        if path.is_dir():
            yield from files_to_read(path, {*above, here})
        elif path.is_file() or (path.is_symlink() and not path.exists()):
            yield path


def refuse_links(folder: Path, what: str) -> None:
    """Raise ``InputError`` for links at or below a folder: ``what`` would reach what they lead to."""
    if links := [path for path in (folder, *sorted(folder.rglob("*"))) if path.is_symlink()]:
        raise InputError(f"{links[0]} is a link: {what}. Put the files in its place, or remove the link.")


def remove_files(paths: Iterable[Path]) -> None:
    """Remove files; one that is not there is no fault. Raises :class:`WorkspaceError` where the disk refuses."""
    for path in paths:
        with writing(path):
            path.unlink(missing_ok=True)


def remove_leftovers(folder: Path, files: str = "**/*") -> None:
    """Remove the temporary files of ``files`` (a pattern) that killed runs left below ``folder``.

    Nobody may be writing these.
    """
    head, _, name = files.rpartition("/")
    for path in folder.glob(f"{head}/.{name}.tmp".lstrip("/")):
        with suppress(FileNotFoundError):  # its writer has moved it into place
            if LEFTOVER.fullmatch(path.name):
                path.unlink()


def json_bytes(value: Any) -> bytes:
    """Return JSON as it is written to files, keys in their order."""
    return (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode()


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write texts one after the other, UTF-8. Raises :class:`WorkspaceError` where the disk refuses."""
    with writing(path), replacing(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        file.writelines(lines)


def read_json(path: Path) -> Any:
    """Return the JSON of a file, or None where there is no such file or it cannot be read."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None


def write_json(path: Path, value: Any) -> None:
    """Write JSON. Raises :class:`WorkspaceError` where the disk refuses."""
    with writing(path), replacing(path) as temporary:
        temporary.write_bytes(json_bytes(value))

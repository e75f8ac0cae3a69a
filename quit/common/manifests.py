"""A folder's manifest: facts, and bytes and SHA-256 of its files, made when they are built and compared when they are
opened."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from typing_extensions import TypedDict

from quit.common.checksums import file_mark, known_checksum
from quit.common.files import json_bytes, read_json, write_json
from quit.common.ids import content_hash
from quit.errors import WorkspaceError


class FileState(TypedDict):
    """A file's size and checksum."""

    bytes: int
    sha256: str


def file_entry(path: Path) -> FileState:
    """Return the state of a file."""
    return {"bytes": path.stat().st_size, "sha256": known_checksum(path)}


def with_checksum(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is written of an object as JSON, with a checksum of it."""
    plain = json.loads(json_bytes(value))
    return {**plain, "checksum": content_hash(plain)}


def as_written(value: Any) -> dict[str, Any] | None:
    """Return what :func:`with_checksum` was given; None for anything else, and for what was changed since."""
    plain = {key: of_key for key, of_key in value.items() if key != "checksum"} if isinstance(value, dict) else {}
    return plain if plain and value.get("checksum") == content_hash(plain) else None


def write_manifest(path: Path, facts: Mapping[str, Any], files: Iterable[Path]) -> None:
    """Write ``facts`` with the entries of ``files``, which lie below the manifest's folder, and a checksum of all this.

    Raises :class:`WorkspaceError` where the disk refuses.
    """
    entries = {file.relative_to(path.parent).as_posix(): file_entry(file) for file in sorted(files)}
    write_json(path, with_checksum({**facts, "files": entries}))


def fault(path: Path) -> str | None:
    """Return which file is not what the manifest ``path`` was written with, itself included; None where all are.

    A file is read once for as long as nobody writes to it (:class:`quit.common.checksums.FileMark`), which a hidden
    file beside the manifest remembers.
    """
    manifest = as_written(read_json(path))
    if manifest is None:
        return f"{path} is missing or was altered"
    before, now = remembered(path), {}
    for name, entry in manifest["files"].items():
        file = path.parent / name
        try:
            mark = file_mark(file)
            state = [*mark[1:], entry["sha256"]]
            if before.get(name) != state and file_entry(file) != entry:
                return f"{file} was altered since it was written"
        except OSError as error:
            return f"{file} cannot be read ({error.strerror or error})"
        if mark.is_settled:
            now[name] = state
    if now != before:
        with suppress(WorkspaceError):  # a folder that only reads: compared again each time
            write_json(_memory(path), now)
    return None


def remembered(path: Path) -> dict[str, Any]:
    """Return the files of a manifest that had their checksums: name -> size, times, inode, checksum."""
    checksums = read_json(_memory(path))
    return checksums if isinstance(checksums, dict) else {}


def _memory(path: Path) -> Path:
    return path.with_name(f".{path.stem}.checked.json")

"""What a folder of model files is known by: everything that is in it, never where it lies."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from quit.common.cache import ContentStore, cache_folder, content_key
from quit.common.files import file_mark, is_settled
from quit.models.loading import located

_ENDS = 1 << 20  # bytes
_FORMER: dict[str, Path] = {}
"""Checksum -> the folder that has it, of the folders of this process."""


def folder_checksum(folder: Path) -> str:
    """Return 12 hexadecimal digits over the names and whole contents of a model folder's files.

    Files and folders whose names begin with a dot do not count: downloads keep their own notes there, with times. A
    file is hashed once, and its checksum remembered in the cache folder under its path, size, times and inode: whole
    weights take a second a gigabyte. Raises ``OSError`` for a file that cannot be read.
    """
    known = ContentStore(cache_folder("checksums") / "files.sqlite", "checksums", "Checksums of model files")
    files = {path.relative_to(folder): path for path in folder.rglob("*") if path.is_file()}
    files = {name: files[name] for name in sorted(files) if not any(part.startswith(".") for part in name.parts)}
    marks = {name: file_mark(path.absolute()) for name, path in files.items()}
    keys = {name: content_key(*map(str, mark)) for name, mark in marks.items()}
    remembered = known.read(list(keys.values()))
    fresh: dict[bytes, bytes] = {}
    digest = hashlib.sha256()
    for name, path in files.items():
        content = remembered.get(keys[name])
        if content is None:
            with path.open("rb") as file:
                content = hashlib.file_digest(file, "sha256").digest()
            if is_settled(marks[name]) and file_mark(path.absolute()) == marks[name]:
                fresh[keys[name]] = content
        digest.update(name.as_posix().encode() + b"\0" + content)
    if fresh:
        known.write(fresh)
    checksum = digest.hexdigest()[:12]
    _FORMER[checksum] = folder
    return checksum


def model_identity(name: str, revision: str = "") -> str:
    """Return what a model is known by: ``FOLDER#CHECKSUM`` of a folder, else its name on the hub; then
    ``@REVISION``."""
    folder = Path(located(name))
    known = f"{folder.name}#{folder_checksum(folder)}" if folder.is_dir() else name
    return known + (f"@{revision}" if revision else "")


@dataclass(frozen=True)
class Former:
    """What a model in a folder was known by before its whole files counted; ``since``: when its files were last changed
    (seconds since 1970)."""

    identity: str
    since: float


def former_identity(identity: str) -> Former | None:
    """Return what a model was known by when replies were paid for by an earlier version; None for one that is in no
    folder.

    That identity knew names, sizes and the first and last mebibyte of each file. It stands for these very weights only
    from the time on at which they were last changed: what was replied before may be another model's.
    """
    for checksum in re.findall(r"#([0-9a-f]{12})", identity):
        if (folder := _FORMER.get(checksum)) is not None:
            files = sorted(path for path in folder.rglob("*") if path.is_file())
            since = max((path.stat().st_mtime for path in files), default=0.0)
            return Former(identity.replace(f"#{checksum}", f"#{_former_checksum(folder, files)}", 1), since)
    return None


def _former_checksum(folder: Path, files: list[Path]) -> str:
    digest = hashlib.sha256()
    for path in files:
        size = path.stat().st_size
        digest.update(f"{path.relative_to(folder).as_posix()}\0{size}\0".encode())
        with path.open("rb") as file:
            digest.update(file.read(_ENDS))
            if size > _ENDS:
                file.seek(max(_ENDS, size - _ENDS))
                digest.update(file.read(_ENDS))
    return digest.hexdigest()[:12]

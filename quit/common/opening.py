"""Files as people have them: gzip and zstd are unpacked on the way."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, TypeVar, cast

Value = TypeVar("Value")
GZIP = b"\x1f\x8b"
ZSTD = b"\x28\xb5\x2f\xfd"
PARQUET = b"PAR1"
PACKED = (".gz", ".zst")
"""Endings of packed files. Their first bytes alone decide how they are read."""


def ending(name: str) -> str:
    """Return the ending of a file's name in small letters, without that of a packed file: ``.jsonl``."""
    path = Path(name.lower())
    return Path(path.stem).suffix if path.suffix in PACKED else path.suffix


def begins_with(path: Path, *marks: bytes) -> bool:
    """Return whether a file begins with some bytes. Raises ``OSError`` where it cannot be read."""
    with path.open("rb") as file:
        return file.read(max(map(len, marks))).startswith(marks)


def open_bytes(path: Path) -> IO[bytes]:
    """Open a file to read, one in gzip or zstd unpacked, whatever its name.

    Raises ``OSError`` where it cannot be read, and, while it is read, for a damaged packed file.
    """
    if begins_with(path, ZSTD):
        import pyarrow as pa

        return cast(IO[bytes], io.BufferedReader(pa.input_stream(str(path), compression="zstd")))
    return cast(IO[bytes], _Unpacked(path) if begins_with(path, GZIP) else path.open("rb"))


class _Unpacked(gzip.GzipFile):
    """A gzip file whose faults are all ``OSError``."""

    def read(self, size: int | None = -1) -> bytes:
        return _named(lambda: super(_Unpacked, self).read(size))

    def read1(self, size: int = -1) -> bytes:
        return _named(lambda: super(_Unpacked, self).read1(size))

    def readline(self, size: int | None = -1) -> bytes:
        return _named(lambda: super(_Unpacked, self).readline(size))


def _named(read: Callable[[], Value]) -> Value:
    try:
        return read()
    except (EOFError, zlib.error) as error:
        raise OSError(f"its gzip is damaged or cut off: {error}") from error

"""Files as people have them: gzip is unpacked on the way, rows of Parquet are objects."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, TypeVar, cast

Value = TypeVar("Value")
GZIP = b"\x1f\x8b"
PARQUET = b"PAR1"


def begins_with(path: Path, mark: bytes) -> bool:
    """Return whether a file begins with some bytes. Raises ``OSError`` where it cannot be read."""
    with path.open("rb") as file:
        return file.read(len(mark)) == mark


def open_bytes(path: Path) -> IO[bytes]:
    """Open a file to read, one in gzip unpacked, whatever its name.

    Raises ``OSError`` where it cannot be read, and, while it is read, for a damaged gzip file.
    """
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


def parquet_rows(path: Path, columns: list[str] | None = None) -> Iterator[dict[str, Any]]:
    """Yield the rows of a Parquet file. Raises ``OSError`` where it cannot be read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=1000, columns=columns):
                yield from batch.to_pylist()
    except (pa.ArrowException, UnicodeDecodeError, OverflowError) as error:
        raise OSError(f"not a readable Parquet file ({error})") from error

"""Files of sources: their names, whether they can be read, and their whole bytes or text."""

from __future__ import annotations

import codecs
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from quit.common.opening import ending, open_bytes
from quit.errors import InputError

MAX_WHOLE = 1 << 31
"""Bytes of a file that is read whole, 2 GiB: it takes up to four times its size in memory. JSON Lines and arrays may be
of any size."""
_OTHERS = (
    (b"version https://git-lfs", "a pointer of Git LFS, not the file itself: run git lfs pull where it comes from"),
    (b"<!doctype html", "a web page, perhaps of a sign-in: download the file again"),
    (b"<html", "a web page, perhaps of a sign-in: download the file again"),
    (b"pk\x03\x04", "a zip archive or a spreadsheet: unpack it, or save it as CSV"),
)
"""First bytes of what is often there in place of data, in lower case, and what it is."""
_GIVEN = re.compile(r"records-[0-9a-f]{16}\.jsonl")


def check_file(path: Path, expected: str, *, folder: bool = False) -> None:
    """Raise ``InputError`` unless ``path`` is a readable regular file, or a ``folder``, that is not empty.

    A pipe or a device may never end, and a build reads a file more than once.
    """
    try:
        mode = path.stat().st_mode
        if folder != stat.S_ISDIR(mode):
            raise InputError(f"{path} is a {'file' if folder else 'folder'}; expected {expected}.")
        if not folder and not stat.S_ISREG(mode):
            raise InputError(
                f"{path} is a pipe, a socket or a device: write what it gives into a file; expected {expected}."
            )
        if not (any(path.iterdir()) if folder else (begins := _beginning(path))):
            raise InputError(f"{path} is empty; expected {expected}.")
        begins = b"" if folder else begins.lstrip().lower()
        if other := next((what for mark, what in _OTHERS if begins.startswith(mark)), None):
            raise InputError(f"{path} is {other}; expected {expected}.")
    except FileNotFoundError:
        raise InputError(
            f"{path} does not exist; expected {expected}. Check the path (working folder: {Path.cwd()})."
        ) from None
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror or error}); expected {expected}.") from None


def _beginning(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(64)


def read_bytes(path: Path, expected: str) -> bytes:
    """Return the content of a file, unpacked. Raises ``InputError``, also above ``MAX_WHOLE`` bytes."""
    check_file(path, expected)
    data, size = b"", path.stat().st_size
    if size <= MAX_WHOLE:
        with reading(path, expected) as file:
            data = file.read(MAX_WHOLE + 1)
    if (size := max(size, len(data))) > MAX_WHOLE:
        raise InputError(
            f"{path} has {size:,} bytes or more, and all but JSON Lines and arrays is read whole, up to "
            f"{MAX_WHOLE:,}: split the file."
        )
    return data


@contextmanager
def reading(path: Path, expected: str) -> Iterator[IO[bytes]]:
    """Open a file, unpacked. Raises ``InputError`` for what cannot be read."""
    try:
        with open_bytes(path) as file:
            yield file
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror or error}); expected {expected}.") from None


def first_mark(path: Path, expected: str) -> bytes:
    """Return the first byte of a file, unpacked, that is no white space; empty where there is none."""
    with reading(path, expected) as file:
        piece = file.read(4096).removeprefix(codecs.BOM_UTF8)
        while piece.isspace():
            piece = file.read(4096)
    return piece.lstrip()[:1]


def read_text(path: Path, expected: str) -> str:
    """Return the text of a file in UTF-8. Raises ``InputError`` as :func:`read_bytes`, and for other encodings."""
    data = read_bytes(path, expected)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise not_utf8(path, error.start, expected) from None


def not_utf8(path: Path, byte: int, expected: str) -> InputError:
    """Return the error for a file whose byte at this place begins no character of UTF-8."""
    return InputError(f"{path} is not UTF-8 text (byte {byte}): save it in the encoding UTF-8; expected {expected}.")


def is_given(file: str) -> bool:
    """Return whether a file holds records that were given from Python: :mod:`quit.library.arguments` names it."""
    return _GIVEN.fullmatch(Path(file).name) is not None


def shown_file(file: str) -> str:
    """Return a file's name for messages: that of records given from Python means nothing to their author."""
    return "your records" if is_given(file) else file


def unit(kind: str, file: str) -> str:
    """Return what positions in a file of a source kind count: its lines, rows or records."""
    suffix = ending(file)
    if kind in ("csv", "huggingface") or (kind == "jsonl" and suffix == ".parquet"):
        return "row"
    return "line" if kind == "jsonl" and suffix == ".jsonl" and not is_given(file) else "record"


def plain_name(name: str) -> str:
    """Return a file's name as tables can hold it: each odd byte, which is no Unicode, becomes one ``?``."""
    return name.encode("utf-8", "replace").decode()

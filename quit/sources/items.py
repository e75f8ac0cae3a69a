"""Values of a file one at a time: JSON arrays record by record, JSON Lines line by line, Parquet row by row, each with
its place for messages.

A damaged array ends the file (nothing after the damage can be trusted); a damaged line costs that line alone.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from quit.common.opening import PARQUET, begins_with
from quit.errors import InputError
from quit.sources import json_text
from quit.sources.drafts import Item
from quit.sources.fields import MAX_QUOTE, BadRecord, describe
from quit.sources.files import check_file, first_mark, is_given, reading
from quit.sources.json_text import read_json

MAX_LINE = 1 << 24
"""Bytes of one line of JSON Lines, 16 MiB: a thousand hints with scores of a hundred candidates each take a quarter of
it."""
AT_ONCE = 1 << 22
"""Bytes of an array that are read at a time where it is read record by record."""
_ROWS_AT_ONCE = 1000


def is_array(path: Path) -> bool:
    """Return whether a file is a JSON array, whatever its name: it begins with ``[``, and is not JSON Lines."""
    return first_mark(path, "JSON") == b"[" and not _is_lines(path)


def _is_lines(path: Path) -> bool:
    """Return whether the first line of a file that is not blank is a whole JSON value, and another one follows."""
    with reading(path, "JSON Lines") as file:
        lines = (line for line in iter(lambda: file.readline(MAX_LINE), b"") if line.strip())
        first, follows = next(lines, b""), any(lines)
    try:
        json_text.DECODER.decode(first.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return False
    return follows


def json_items(path: Path, expected: str, marks: frozenset[str]) -> Iterator[Item]:
    """Yield the records of a file: a JSON array, object of id -> record or of split -> array, one record, JSON Lines,
    or Parquet.

    ``marks`` are keys that tell a record from an object of records. Raises ``InputError`` for what is not JSON, with
    line and column.
    """
    check_file(path, expected)
    if begins_with(path, PARQUET) or is_array(path) or _is_lines(path):
        yield from line_items(path, expected)
        return
    value = read_json(path, expected)
    if not isinstance(value, dict):
        raise InputError(f"{path} holds {describe(value)}; expected {expected}.")
    if marks & value.keys():
        yield Item(value, 0, path.name, "record 1")
        return
    yield from _object(value, path)


def array_items(
    file: IO[bytes], path: Path, expected: str, pairs: json_text.Pairs | None = None, at_once: int = AT_ONCE
) -> Iterator[Item]:
    """Yield the records of a JSON array one at a time. Raises as :class:`quit.sources.json_text.JsonArray`."""
    for position, value in enumerate(json_text.JsonArray(file, path, expected, pairs, at_once)):
        yield Item(value, position, path.name, f"record {position + 1}")


def line_items(path: Path, expected: str, pairs: json_text.Pairs | None = None) -> Iterator[Item]:
    """Yield the values of a JSON Lines file, blank lines left out; ``position`` is the line's number from 0.

    A file that begins with ``[`` is read as a JSON array, one of Parquet row by row. A line of more than ``MAX_LINE``
    bytes is a fault; no more of it is held in memory. Raises ``InputError`` for a missing or empty file.
    """
    check_file(path, expected)
    if begins_with(path, PARQUET):
        yield from row_items(path, expected)
        return
    array, decoder, offset = is_array(path), json_text.decoder(pairs), 0
    with reading(path, expected) as file:
        if array:
            yield from array_items(file, path, expected, pairs)
            return
        for index, line in enumerate(iter(lambda: file.readline(MAX_LINE), b"")):
            size = len(line)
            if size == MAX_LINE and not line.endswith(b"\n"):
                while (more := file.readline(MAX_LINE)) and not more.endswith(b"\n"):
                    size += len(more)
                size += len(more)
                yield Item(None, index, path.name, _where(index, path.name), fault=_TOO_LONG)
            elif (content := line.removeprefix(b"" if index else codecs.BOM_UTF8)).strip():
                yield _line(content, index, path.name, decoder, offset)
            offset += size


def row_items(path: Path, expected: str, columns: list[str] | None = None) -> Iterator[Item]:
    """Yield the rows of a Parquet file, of all columns or some. Raises ``InputError`` where it cannot be read."""
    from quit.common.parquet import Owner, opened

    with opened(path, owner=Owner(InputError, f"Expected {expected}.")) as file:
        batches = file.iter_batches(_ROWS_AT_ONCE, columns=columns)
        for position, row in enumerate(row for batch in batches for row in batch.to_pylist()):
            yield Item(row, position, path.name, f"row {position + 1}")


_TOO_LONG = BadRecord("too_long", f"The line is longer than {MAX_LINE:,} bytes: write one record per line.")


def _where(index: int, file: str) -> str:
    return f"record {index + 1} of your records" if is_given(file) else f"line {index + 1}"


def _line(line: bytes, index: int, file: str, decoder: json.JSONDecoder, offset: int) -> Item:
    where = _where(index, file)
    try:
        return Item(decoder.decode(line.decode("utf-8")), index, file, where, offset=offset)
    except UnicodeDecodeError as error:
        fault = BadRecord(
            "not_utf8", f"The line is not UTF-8 text (byte {error.start}): save the file in the encoding UTF-8."
        )
    except json.JSONDecodeError as error:
        fault = BadRecord("not_json", f"The line is not JSON: {error.msg}, column {error.colno}.")
    except (ValueError, RecursionError):
        fault = BadRecord("not_json", "The line is not usable JSON: a number too long or nesting too deep.")
    return Item(None, index, file, where, fault=fault)


def _object(value: dict[str, Any], path: Path) -> Iterator[Item]:
    position = 0
    many = sum(isinstance(part, list) for part in value.values()) > 1
    for key, part in value.items():
        if many:  # splits number their records independently, so each counts as a separate file
            position = 0
        file = f"{path.name}#{key[:MAX_QUOTE]}" if many else path.name
        for record in part if isinstance(part, list) else [part]:
            yield Item(record, position, file, f"record {position + 1}", key=None if isinstance(part, list) else key)
            position += 1

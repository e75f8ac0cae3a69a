"""JSON Lines that people write for a command, and diaries that runs append to: rows with their line numbers.

Sources and corpora, where a bad line is a reject and no error, are read by :mod:`quit.sources.files`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from quit.common.opening import PARQUET, begins_with, open_bytes, parquet_rows
from quit.errors import InputError, did_you_mean

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def json_object(line: str | bytes, where: str, expected: str = "") -> dict[str, Any]:
    """Return the object on a line.

    Raises ``InputError`` for a line that holds none; it begins with ``where`` and says what was ``expected``.
    """
    try:
        row = json.loads(line, object_pairs_hook=once_each)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: {f'expected {expected}' if expected else 'no JSON'} ({error}).") from error
    if not isinstance(row, dict):
        raise InputError(f"{where}: expected {expected or 'an object'}, found {str(row)[:60]!r}.")
    return row


def once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of its keys and values. Raises ``ValueError`` for a key that is there twice, as where two
    records ran into each other."""
    values = dict(pairs)
    if len(values) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise json.JSONDecodeError(f"the key {twice[:40]!r} is there twice in an object", "", 0)
    return values


def json_lines(path: Path, what: str = "", expected: str = "") -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line number from 1, object) for each line of a file that is not blank, or each row of Parquet.

    ``what`` it holds, for messages; ``expected`` what a line should hold. Raises ``InputError`` for a file that cannot
    be read, and, naming file and line, for a line that is no object or holds a lone surrogate (``\\ud800``), which no
    model and no table takes.
    """
    try:
        if begins_with(path, PARQUET):
            yield from enumerate(parquet_rows(path), start=1)
            return
        with TextIOWrapper(open_bytes(path), encoding="utf-8-sig") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    row = json_object(line, f"{path}, line {number}", expected)
                    if "\\ud" in line.lower() and _LONE_SURROGATE.search(json.dumps(row, ensure_ascii=False)):
                        raise InputError(f"{path}, line {number}: half of a surrogate pair is no text: take it out.")
                    yield number, row
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"Cannot read {what and what + ' '}{path}: {getattr(error, 'strerror', None) or error}."
        ) from error


def keyed_lines(path: Path, what: str, expected: str, keys: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (file and line, object) of each line of :func:`json_lines`.

    Raises ``InputError`` too for a key that is not in ``keys``, and for a line whose first key is no text or has a line
    already.
    """
    names = set()
    for number, row in json_lines(path, what, expected):
        where = f"{path}, line {number}"
        if unknown := sorted(row.keys() - set(keys)):
            raise InputError(f"{where}: {unknown[0]!r} is no key here.{did_you_mean(unknown[0], [*keys])}")
        name = row.get(keys[0])
        if not isinstance(name, str):
            raise InputError(f"{where}: expected {expected}; {keys[0]!r} must be a text.")
        if name in names:
            raise InputError(f"{where}: {name!r} has a line already.")
        names.add(name)
        yield where, row


def diary_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield (line number from 1, value) of a diary, oldest first; nothing where there is none.

    A line that is not JSON is left out: a kill cut it short.
    """
    if not path.is_file():
        return
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").split("\n"), start=1):
        try:
            yield number, json.loads(line)
        except (ValueError, RecursionError):
            continue

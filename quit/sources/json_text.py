"""JSON of sources, decoded with the line and column of what is wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from quit.errors import InputError
from quit.sources.files import read_text

Pairs = Callable[[list[tuple[str, Any]]], dict[str, Any]]
"""Makes an object of its keys and values, as ``object_pairs_hook`` of :mod:`json`; sees keys that are there twice."""
_SPACE = re.compile(r"[ \t\r\n]*")


def decoder(pairs: Pairs | None = None) -> json.JSONDecoder:
    """Return a decoder to which NaN is null: Python writes it where a value of pandas is missing."""
    return json.JSONDecoder(object_pairs_hook=pairs, parse_constant=lambda name: None if name == "NaN" else float(name))


DECODER = decoder()


def read_json(path: Path, expected: str) -> Any:
    """Return the value of a JSON file. Raises ``InputError`` for what is not JSON, with line and column."""
    text = read_text(path, expected)
    begin = skip(text, 0)
    try:
        value, end = DECODER.raw_decode(text, begin)
    except (ValueError, RecursionError) as error:
        raise broken(text, *fault_of(error, begin), path, expected, "in the file") from None
    if (rest := skip(text, end)) < len(text):
        raise broken(text, rest, "unexpected text", path, expected, "after the end of the value")
    return value


def skip(text: str, at: int) -> int:
    """Return the place of the next character that is no space."""
    blank = _SPACE.match(text, at)
    return blank.end() if blank else at


def fault_of(error: Exception, at: int) -> tuple[int, str]:
    """Return the place of a decoder's fault, and what it is."""
    if isinstance(error, json.JSONDecodeError):
        return error.pos, error.msg.removesuffix(" starting at")
    return at, "a number too long or nesting too deep"


def place_of(text: str, at: int, line: int, column: int) -> tuple[int, int]:
    """Return line and column of a character of a text that begins at ``line`` and ``column``."""
    lines = text.count("\n", 0, at)
    return line + lines, at - text.rfind("\n", 0, at) if lines else column + at


def broken(
    text: str, at: int, what: str, path: Path, expected: str, where: str, line: int = 1, column: int = 1
) -> InputError:
    """Return the error for a text that is not JSON from ``at`` on; it begins at ``line`` and ``column``."""
    line, column = place_of(text, at, line, column)
    cut = (
        " The file ends in the middle: is it cut off?"
        if what.startswith("Unterminated") or at >= len(text.rstrip())
        else ""
    )
    return InputError(f"{path} is not JSON: {what} {where} (line {line}, column {column}).{cut} Expected {expected}.")

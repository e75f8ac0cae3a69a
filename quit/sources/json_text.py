"""JSON of sources, decoded whole or value by value, with the line and column of what is wrong."""

from __future__ import annotations

import codecs
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from quit.errors import InputError
from quit.sources.files import not_utf8, read_text

Pairs = Callable[[list[tuple[str, Any]]], dict[str, Any]]
"""Makes an object of its keys and values, as ``object_pairs_hook`` of :mod:`json`; sees keys that are there twice."""
_TOKEN = len("\\ud83d\\ude00")  # the longest that a cut can leave in halves, except texts
_SPACE = re.compile(r"[ \t\r\n]*")


def decoder(pairs: Pairs | None = None) -> json.JSONDecoder:
    """Return a decoder to which NaN is null: Python writes it where a value of pandas is missing."""
    return json.JSONDecoder(object_pairs_hook=pairs, parse_constant=lambda name: None if name == "NaN" else float(name))


DECODER = decoder()


def each_once(path: Path) -> Pairs:
    """Return what makes objects of keys that are there once. It raises ``InputError``, with the path, for others."""

    def make(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        for key, count in Counter(key for key, _ in pairs).items():
            if count > 1:
                raise InputError(f"{path} has the key {key!r} {count} times in one object: leave one.")
        return dict(pairs)

    return make


def read_json(path: Path, expected: str, pairs: Pairs | None = None) -> Any:
    """Return the value of a JSON file. Raises ``InputError`` for what is not JSON, with line and column."""
    text = read_text(path, expected)
    begin = _skip(text, 0)
    try:
        value, end = decoder(pairs).raw_decode(text, begin)
    except (ValueError, RecursionError) as error:
        raise _broken(text, *_fault_of(error, begin), path, expected, "in the file") from None
    if (rest := _skip(text, end)) < len(text):
        raise _broken(text, rest, "unexpected text", path, expected, "after the end of the value")
    return value


class JsonArray:
    """The values of a JSON array in a file, once and one at a time: in memory are one of them and ``at_once`` bytes.

    Raises ``InputError`` for anything else, with record, line and column, after the values before.
    """

    def __init__(self, file: IO[bytes], path: Path, expected: str, pairs: Pairs | None, at_once: int) -> None:
        self._file, self._path, self._expected, self._at_once = file, path, expected, at_once
        self._decode, self._decoder = codecs.getincrementaldecoder("utf-8-sig")().decode, decoder(pairs)
        self._text, self._at, self._is_more = "", 0, True
        self._size, self._line, self._column = 0, 1, 1  # bytes read so far; place of the text's first character

    def __iter__(self) -> Iterator[Any]:
        if self._mark() != "[":
            raise self._fault(self._at, "no array", "at its beginning")
        self._at += 1
        record = 0
        while self._mark() != "]":
            if record:
                if self._mark() != ",":
                    raise self._fault(self._at, "expected ',' or ']'", f"after record {record}")
                self._at += 1
                self._mark()
            record += 1
            yield self._value(record)
        self._at += 1
        if self._mark():
            raise self._fault(self._at, "unexpected text", "after the end of the array")

    def _mark(self) -> str:
        """Go to the next character that is no space, and return it."""
        while (at := _skip(self._text, self._at)) == len(self._text) and self._is_more:
            self._at = at
            self._read()
        self._at = at
        return self._text[at : at + 1]

    def _value(self, record: int) -> Any:
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
            except (ValueError, RecursionError) as error:
                at, what = _fault_of(error, self._at)
                if not (self._is_more and (what.startswith("Unterminated") or at + _TOKEN >= len(self._text))):
                    raise self._fault(at, what, f"in record {record}") from None
                value, end = None, len(self._text)
            if end + _TOKEN < len(self._text) or not self._is_more:
                self._at = end
                return value
            self._read()  # a number may go on

    def _read(self) -> None:
        """Read on; what is before the place is let go of."""
        piece = self._file.read(max(self._at_once, len(self._text) - self._at))
        self._size += len(piece)
        self._line, self._column = _place_of(self._text, self._at, self._line, self._column)
        try:
            self._text = self._text[self._at :] + self._decode(piece, not piece)
        except UnicodeDecodeError as error:
            raise not_utf8(self._path, self._size - len(error.object) + error.start, self._expected) from None
        self._at, self._is_more = 0, bool(piece)

    def _fault(self, at: int, what: str, where: str) -> InputError:
        return _broken(self._text, at, what, self._path, self._expected, where, self._line, self._column)


def _skip(text: str, at: int) -> int:
    """Return the place of the next character that is no space."""
    blank = _SPACE.match(text, at)
    return blank.end() if blank else at


def _fault_of(error: Exception, at: int) -> tuple[int, str]:
    """Return the place of a decoder's fault, and what it is."""
    if isinstance(error, json.JSONDecodeError):
        return error.pos, error.msg.removesuffix(" starting at")
    return at, "a number too long or nesting too deep"


def _place_of(text: str, at: int, line: int, column: int) -> tuple[int, int]:
    """Return line and column of a character of a text that begins at ``line`` and ``column``."""
    lines = text.count("\n", 0, at)
    return line + lines, at - text.rfind("\n", 0, at) if lines else column + at


def _broken(
    text: str, at: int, what: str, path: Path, expected: str, where: str, line: int = 1, column: int = 1
) -> InputError:
    """Return the error for a text that is not JSON from ``at`` on; it begins at ``line`` and ``column``."""
    line, column = _place_of(text, at, line, column)
    cut = (
        " The file ends in the middle: is it cut off?"
        if what.startswith("Unterminated") or at >= len(text.rstrip())
        else ""
    )
    return InputError(f"{path} is not JSON: {what} {where} (line {line}, column {column}).{cut} Expected {expected}.")

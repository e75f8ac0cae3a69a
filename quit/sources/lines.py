"""JSON Lines that people write for a command: rows with their line numbers, where a bad line is an error.

In files of questions and documents a bad line is a reject: :mod:`quit.sources.items`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from quit.errors import InputError, did_you_mean
from quit.sources.drafts import Item
from quit.sources.fields import describe
from quit.sources.items import line_items

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of its keys and values. Raises ``ValueError`` for a key that is there twice, as where two
    records ran into each other."""
    values = dict(pairs)
    if len(values) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise json.JSONDecodeError(f"the key {twice[:40]!r} is there twice in an object", "", 0)
    return values


def objects(path: Path, expected: str) -> Iterator[tuple[Item, dict[str, Any]]]:
    """Yield the items of a file (:func:`quit.sources.items.line_items`) with their objects.

    Raises ``InputError`` for a file that cannot be read, and, naming file and line, for what is no object with each key
    once.
    """
    for item in line_items(path, expected, once_each):
        if item.fault:
            raise InputError(f"{path}, {item.where}: {item.fault.detail.rstrip('.')}; expected {expected}.")
        if not isinstance(item.value, dict):
            raise InputError(f"{path}, {item.where} is {describe(item.value)}; expected {expected}.")
        yield item, item.value


def json_lines(path: Path, expected: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line number from 1, object) of each line of a file.

    Raises ``InputError`` as :func:`objects`, for a lone surrogate (``\\ud800``), which no model and no table takes, and
    for a file of blank lines.
    """
    number = 0
    for item, row in objects(path, expected):
        number = item.position + 1
        if _LONE_SURROGATE.search(json.dumps(row, ensure_ascii=False)):
            raise InputError(f"{path}, {item.where}: half of a surrogate pair is no text: take it out.")
        yield number, row
    if not number:
        raise InputError(f"{path} holds nothing; expected {expected}.")


def keyed_lines(
    path: Path, expected: str, keys: Sequence[str], same: Callable[[str], str] = str
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (file and line, object) of each line of :func:`json_lines`.

    Raises ``InputError`` too for a key that is not in ``keys``, and for a line whose first key is no text or has a line
    already; ``same``: what makes two of them one, such as ``str.lower``.
    """
    names = set()
    for number, row in json_lines(path, expected):
        where = f"{path}, line {number}"
        if unknown := sorted(row.keys() - set(keys)):
            raise InputError(f"{where}: {unknown[0]!r} is no key here.{did_you_mean(unknown[0], [*keys])}")
        name = row.get(keys[0])
        if not isinstance(name, str):
            raise InputError(f"{where}: expected {expected}; {keys[0]!r} must be a text.")
        if same(name) in names:
            raise InputError(f"{where}: {name!r} has a line already.")
        names.add(same(name))
        yield where, row

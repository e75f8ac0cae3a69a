"""Frozen values: files of named entries, and the places at which two entries differ."""

import hashlib
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
PERMUTATIONS = sorted("".join(chosen) for n in range(1, 6) for chosen in itertools.permutations("01234", n))
"""The passages of five hints, in the order in which a question's labels are kept: one character a passage."""


def checksum(content: str | bytes) -> str:
    """Return the first 16 hexadecimal digits of the SHA-256."""
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()[:16]


def read(part: str) -> dict[str, Any]:
    """Return entry -> value of a part; empty where nothing is frozen yet."""
    path = FOLDER / f"{part}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def write(part: str, entries: dict[str, Any]) -> None:
    """Write the entries of a part, a line a question or column, so that a change of one is a change of its line."""
    (FOLDER / f"{part}.json").write_text(_lines(dict(sorted(entries.items())), 3) + "\n", encoding="utf-8")


def _lines(value: Any, depth: int, indent: str = "") -> str:
    if depth and value and isinstance(value, dict):
        inner = indent + " "
        rows = (
            f"{inner}{json.dumps(key, ensure_ascii=False)}: {_lines(row, depth - 1, inner)}"
            for key, row in value.items()
        )
        return "{\n" + ",\n".join(rows) + f"\n{indent}}}"
    return json.dumps(value, ensure_ascii=False)


def differences(frozen: Any, now: Any, place: str) -> Iterator[str]:
    """Yield a line a place at which two values differ: its name, the frozen value, today's."""
    if isinstance(frozen, dict) and isinstance(now, dict):
        for key in dict.fromkeys([*frozen, *now]):
            yield from differences(frozen.get(key), now.get(key), f"{place} {key}")
    elif isinstance(frozen, list) and isinstance(now, list):
        for number, (one, other) in enumerate(itertools.zip_longest(frozen, now)):
            yield from differences(one, other, f"{place}[{number}]")
    elif frozen != now:
        if isinstance(frozen, str) and isinstance(now, str) and len(frozen) == len(now) == len(PERMUTATIONS):
            pairs = [row for row in zip(PERMUTATIONS, frozen, now, strict=True) if row[1] != row[2]]
            shown = ", ".join(f"passage {name}: {one} -> {other}" for name, one, other in pairs[:5])
            yield f"{place}: {len(pairs)} passages: {shown}"
        else:
            yield f"{place}: {json.dumps(frozen, ensure_ascii=False)} -> {json.dumps(now, ensure_ascii=False)}"

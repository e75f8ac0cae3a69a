"""A page's fenced blocks in order, and how what they print is compared with what the page shows.

A comment above a block says what is special about it: ``not run``, ``exits with 1``, ``in the background until: TEXT``.
A comment of its own, ``annotate workspace``, stands for what a person does. A ``text`` block is what the
commands before it print: its lines have to appear in order; ``...`` stands for anything, white space does not count,
and a number may be off by a tenth (models on another processor round otherwise) unless it is below ten.
"""

import re
from dataclasses import dataclass
from pathlib import Path

_PART = re.compile(r"^<!-- (?P<note>.*?) -->$|^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.M | re.S)
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
TOLERANCE = 0.1


@dataclass(frozen=True)
class Block:
    """A fenced block (``kind``: its language) or a comment (``kind``: ``comment``), with the comment above it, and its
    line."""

    kind: str
    text: str
    note: str
    line: int


def blocks(page: Path) -> list[Block]:
    """Return a page's blocks and the comments that stand for actions."""
    text = page.read_text(encoding="utf-8")
    parts: list[Block] = []
    note, end = "", 0
    for part in _PART.finditer(text):
        line = text.count("\n", 0, part.start()) + 1
        if note and text[end : part.start()].strip():
            raise ValueError(f"{page.name}: the comment {note!r} stands above no block")
        if part["note"] is None:
            parts.append(Block(part["kind"], part["text"], note, line))
            note = ""
        elif part["note"].startswith("annotate "):
            parts.append(Block("comment", part["note"], "", line))
        else:
            note, end = part["note"], part.end()
    return parts


def missing(shown: str, printed: str) -> str | None:
    """Return the first line of ``shown`` that does not appear, after those before it, in ``printed``; none if all
    do."""
    lines = [_flat(line) for line in printed.splitlines()]
    at = 0
    for line in (_flat(line) for line in shown.splitlines()):
        if line in ("", "..."):
            continue
        place_of_line = next((place for place in range(at, len(lines)) if _alike(line, lines[place])), None)
        if place_of_line is None:
            return line
        at = place_of_line + 1
    return None


def _flat(line: str) -> str:
    return " ".join(line.split())


def _alike(shown: str, printed: str) -> bool:
    parts = re.split(r"(\.\.\.)|(" + _NUMBER.pattern + ")", shown)
    pattern = "".join(
        ".*" if part == "..." else f"({_NUMBER.pattern})" if _NUMBER.fullmatch(part) else re.escape(part)
        for part in parts
        if part
    )
    match = re.fullmatch(pattern, printed)
    wanted = [part for part in parts if part and _NUMBER.fullmatch(part)]
    return bool(match) and all(_near(a, b) for a, b in zip(wanted, match.groups(), strict=True))


def _near(shown: str, printed: str) -> bool:
    one, other = (float(text.replace(",", "")) for text in (shown, printed))
    return abs(one - other) <= (TOLERANCE * one if one >= 10 else 0)

"""The model of a table, its rendering as Markdown, and how figures are written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Table:
    """A table. ``text``: columns (from 0) that hold words: they are set flush left, as the first one always is, and may
    wrap; the others hold figures. ``more``: rows left out."""

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[Any]]
    text: tuple[int, ...] = ()
    note: str = ""
    more: int = 0

    @property
    def wide(self) -> bool:
        """Whether half a page is too narrow for it."""
        return sum(max(len(str(cell)) for cell in column) for column in zip(self.heads, *self.rows, strict=True)) > 60


def markdown(pieces: Iterable[Table | str]) -> str:
    """Return tables and sentences as Markdown; their texts are written as they are."""
    texts = []
    for piece in pieces:
        if isinstance(piece, Table):
            lines = [piece.heads, ["---"] * len(piece.heads), *piece.rows]
            table = "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)
            texts += [text for text in (piece.title and f"{piece.title}:", table, piece.note) if text]
        else:
            texts.append(piece)
    return "\n\n".join(texts) + "\n"


def percent(value: float | None) -> str:
    """Return a share of 1 as a percentage; a dash for None."""
    return number(value, ".1%")


def number(value: float | None, form: str = ",.2f", missing: str = "–") -> str:
    """Return a number; ``missing`` for None."""
    return missing if value is None else format(value, form)


def share(part: float, whole: float) -> str:
    """Return a part of a whole as a percentage; a dash where the whole is nothing."""
    return percent(part / whole if whole else None)

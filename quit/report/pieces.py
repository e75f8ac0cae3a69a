"""What a section of the report is made of, and how figures are written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

SPLITS = ("train", "dev", "test")
Facts = dict[str, Any]
"""What :func:`quit.report.data.gather` returns, or a part of it."""


@dataclass(frozen=True)
class Table:
    """A table. ``text``: columns (from 0) that hold words and are set flush left, as the first one always is; ``more``:
    rows left out."""

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


@dataclass(frozen=True)
class Plot(Table):
    """A plot (``svg``, trusted markup of :mod:`quit.render.plots`) with the table behind it; ``name`` is unique on the
    page."""

    name: str = ""
    svg: str = ""


@dataclass(frozen=True)
class Section:
    """``terms``: words of the section and what they mean; ``said``: sentences; then plots, then tables."""

    name: str
    title: str
    terms: dict[str, str] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    plots: list[Plot] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)


def percent(value: float | None) -> str:
    """Return a share of 1 as a percentage; a dash for None."""
    return "–" if value is None else f"{value:.1%}"


def number(value: float | None, form: str = ",.2f") -> str:
    """Return a number; a dash for None."""
    return "–" if value is None else format(value, form)


def counted(count: int, noun: str, plural: str = "") -> str:
    """Return a count with its noun: ``1 hint``, ``1,200 hints``."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def share(part: float, whole: float) -> str:
    """Return a part of a whole as a percentage; a dash where the whole is nothing."""
    return percent(part / whole if whole else None)

"""What a section of the report is made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from quit.render.table import Plot, Table

SPLITS = ("train", "dev", "test")
Facts = dict[str, Any]
"""What :func:`quit.report.data.gather` returns, or a part of it."""


@dataclass(frozen=True)
class Section:
    """``said``: sentences; then plots, then tables."""

    name: str
    title: str
    said: list[str] = field(default_factory=list)
    plots: list[Plot] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)

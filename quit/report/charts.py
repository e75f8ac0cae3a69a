"""Plots of the report with the table behind each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from quit.render import plots
from quit.render.table import Plot, Table, percent
from quit.report.facts import Row

MAX_ROWS = 50
"""Rows of a list in the report; the rest is counted."""
Pieces = Iterator[str | Table]
"""Sentences, plots and tables of a section, in its order."""


def bars(
    name: str,
    title: str,
    heads: Sequence[str],
    rows: Sequence[Sequence[Any]],
    across: str,
    columns: Sequence[int] = (1,),
    note: str = "",
) -> Plot:
    """Return bars for the counts in some ``columns`` of a table, stacked."""
    series = {heads[column]: [row[column] for row in rows] for column in columns}
    svg = plots.bars(f"plot-{name}", [row[0] for row in rows], series, across)
    return Plot(title, heads, rows, note=note, name=f"plot-{name}", svg=svg)


def histogram(name: str, title: str, bars: list[Row], groups: Sequence[str], across: str, up: str) -> Plot:
    rows = [(f"{row['low']:.3g} to {row['high']:.3g}", *(row[group] for group in groups)) for row in bars]
    svg = plots.histogram(f"plot-{name}", bars, groups, across, up)
    return Plot(title, (across, *groups), rows, name=f"plot-{name}", svg=svg)


def shares_by_hints(name: str, series: Mapping[str, Mapping[int, float]]) -> Plot:
    sizes = sorted({size for points in series.values() for size in points})
    rows = [(size, *(percent(points.get(size)) for points in series.values())) for size in sizes]
    svg = plots.lines(f"plot-{name}", series, "hints in the passage", "fully relevant (label 2)")
    title = "Fully relevant passages by number of hints"
    return Plot(title, ("hints", *series), rows, name=f"plot-{name}", svg=svg)

"""Tables and sentences on the terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import cache

from rich import table as rich
from rich.markup import escape

from quit.common.terminal import SafeConsole, wrapped
from quit.render.table import Table

WIDEST = 10_000  # columns: more than any line needs


@cache
def console(stderr: bool = False) -> SafeConsole:
    """Return the console of stdout or stderr. Whether that is a terminal, and its colours, are those of the first
    call."""
    width = None if stderr or sys.stdout.isatty() else WIDEST
    return SafeConsole(stderr=stderr, highlight=False, width=width)


def show(pieces: Iterable[Table | str], fold: bool = False) -> None:
    """Print tables and sentences, each after a blank line except the first. ``fold``: break names to fit a terminal."""
    out = console()
    for position, piece in enumerate(pieces):
        if position:
            out.print()
        if isinstance(piece, Table):
            _show(piece, out, fold and out.is_terminal)
        else:
            sentence(piece)


def sentence(text: str, stderr: bool = False) -> None:
    """Print a text as it is; on a terminal its lines break at spaces."""
    out = console(stderr)
    out.print(escape(wrapped(text, out.width if out.is_terminal else WIDEST)), soft_wrap=True)


def line(markup: str = "", soft_wrap: bool = False) -> None:
    """Print a line with rich's marks of style."""
    console().print(markup, soft_wrap=soft_wrap)


def _show(table: Table, out: SafeConsole, fold: bool) -> None:
    """Print a table as wide as the terminal, and where its names need more, as wide as it has to be."""
    grid = rich.Table(
        title=escape(table.title) or None, title_justify="left", box=None, pad_edge=False, header_style="bold"
    )
    for place, head in enumerate(table.heads):
        left, wraps = not place or place in table.text, place in table.text
        grid.add_column(escape(head), justify="left" if left else "right", no_wrap=not (wraps or fold), overflow="fold")
    for row in table.cells:
        grid.add_row(*map(escape, row))
    options = out.options.update(width=WIDEST)
    for column in () if fold else grid.columns:
        cells = [out.measure(cell, options=options) for cell in (column.header, *column.cells)]
        column.min_width = max(cell.maximum if column.no_wrap else cell.minimum for cell in cells)
    measured = out.measure(grid, options=options)
    grid.width = min(out.width if fold else max(out.width, measured.minimum), measured.maximum)
    with out.capture() as printed:
        out.print(grid, crop=False)
    for line in printed.get().splitlines():
        out.file.write(line.rstrip() + "\n")
    for text in filter(None, (table.note, f"... {table.more:,} more" if table.more else "")):
        sentence(text)

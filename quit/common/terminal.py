"""What prints for people: control characters of the data are shown as escapes and never reach the terminal."""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
from collections.abc import Iterable
from typing import Any

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from quit.text.invisible import visible


class SafeConsole(Console):
    """A console whose own styles are the only control sequences that it writes. ``:one:`` stays what it is."""

    def __init__(self, **options: Any) -> None:
        super().__init__(emoji=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """Return a text to print; cells of tables are measured as this too."""
        return super().render_str(visible(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield what is written: what is no text but a ``Text`` or a bar passes here alone."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=visible(segment.text))


def echo(text: object = "", *, err: bool = False, nl: bool = True) -> None:
    """Print a text; the escapes in it are JSON's, so that JSON still says the same."""
    typer.echo(visible(str(text)), err=err, nl=nl)


def wrapped(text: str, width: int) -> str:
    """Return a text with its lines broken at spaces. Words stay whole, as does a command at the end of a line."""
    lines = []
    for line in text.split("\n"):
        bound = re.sub(r": quit .*$", lambda match: ": " + match[0][2:].replace(" ", "\0"), line)
        pieces = textwrap.wrap(bound, width, break_long_words=False, break_on_hyphens=False, drop_whitespace=True)
        lines.append("\n".join(pieces).replace("\0", " ") if len(line) > width else line)
    return "\n".join(lines)


def say(text: object, *, err: bool = False) -> None:
    """Print a text for people, as :func:`echo`; on a terminal its sentences wrap."""
    stream = sys.stderr if err else sys.stdout
    echo(wrapped(str(text), shutil.get_terminal_size().columns) if stream.isatty() else text, err=err)

"""HTML from templates: no scripts, no network, every text from data escaped by the template engine."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from quit.common.ids import HINT_CHARACTERS
from quit.render.table import BASES, plain_name, share
from quit.text.words import counted

TEMPLATES = Path(__file__).parent / "templates"


@cache
def environment() -> Environment:
    """Return the templates; what they are given is escaped unless it is ``Markup``."""
    templates = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters |= {
        "spans": spans,
        "n": "{:,}".format,
        "counted": counted,
        "share": share,
        "plain_name": plain_name,
        "digit": HINT_CHARACTERS.__getitem__,
        "basis": lambda name: BASES.get(name, "–"),
    }
    return templates


def template_text(name: str) -> str:
    """Return a file of :data:`TEMPLATES` as it is: the style sheet of report and browser view, a script."""
    return (TEMPLATES / name).read_text(encoding="utf-8")


def spans(text: str, words: Sequence[str]) -> list[tuple[str, bool]]:
    """Cut ``text`` where one of ``words`` stands; return pieces, each with whether it is one of them.

    >>> spans("It is in Rome.", ["Rome"])
    [('It is in ', False), ('Rome', True), ('.', False)]
    """
    ordered = sorted({span for span in words if span}, key=len, reverse=True)
    if not ordered:
        return [(text, False)]
    pieces = re.split("(" + "|".join(map(re.escape, ordered)) + ")", text)
    return [(piece, position % 2 == 1) for position, piece in enumerate(pieces) if piece]

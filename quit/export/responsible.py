"""What a dataset card says of how the data was made, for Croissant's responsible-AI fields."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from html import unescape
from typing import NamedTuple

from quit.export.card import card_context
from quit.export.card_facts import CardFacts
from quit.export.templates import template

_ITEM = re.compile(r"^(?:-|\d+\.) |\n\n", re.MULTILINE)


class Responsible(NamedTuple):
    """How the data was made, by whom, and its limits, without Markdown. ``activities``: name -> text, in the order in
    which they were done; ``fields``: field of Croissant's vocabulary on responsible AI -> paragraphs or items of a
    list."""

    activities: Mapping[str, str]
    fields: Mapping[str, Sequence[str]]


def responsible(facts: CardFacts) -> Responsible:
    """Return the texts of a card for Croissant: activities are the calls of ``activity(NAME)`` in ``card.md``, fields
    the blocks of ``card.md`` and ``responsible.md``."""
    activities: dict[str, str] = {}
    fields: dict[str, list[str]] = {}

    def activity(name: str, caller: Callable[[], str]) -> str:
        activities[name] = _plain(text := caller())
        return text

    values = card_context(facts)._asdict()
    template("card.md").render(values, activity=activity)
    for page in map(template, ("card.md", "responsible.md")):
        context = page.new_context(values)
        for name, block in page.blocks.items():
            items = _ITEM.split("".join(block(context)))
            fields.setdefault(name, []).extend(_plain(item) for item in items if item.strip())
    return Responsible(activities, fields)


def _plain(text: str) -> str:
    without_links = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text)
    return unescape(" ".join(re.sub(r"`|\*\*|\\(?=[^\w\s])", "", without_links).split()))

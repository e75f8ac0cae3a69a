"""The model of a table, its rendering as Markdown, and how figures are written."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any


@dataclass(frozen=True)
class Table:
    """A table. ``text``: columns (from 0) that hold words: they are set flush left, as the first one always is, and may
    wrap; the others hold figures. ``more``: rows left out. ``fold``: a page shows it on demand. ``cells``: the rows as
    text."""

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[Any]]
    text: tuple[int, ...] = ()
    note: str = ""
    more: int = 0
    fold: bool = False

    @property
    def cells(self) -> list[list[str]]:
        """The rows as text: counts with commas, other numbers with two decimals, a dash for None."""
        return [[_text(cell) for cell in row] for row in self.rows]

    @property
    def width(self) -> int:
        """The characters of a line."""
        return sum(max(len(str(text)) for text in column) + 2 for column in zip(self.heads, *self.cells, strict=True))


@dataclass(frozen=True)
class Plot(Table):
    """A plot (``svg``, trusted markup of :mod:`quit.render.plots`) with the table behind it; ``name`` is unique on the
    page."""

    name: str = ""
    svg: str = ""


def markdown(pieces: Iterable[Table | str]) -> str:
    """Return tables and sentences as Markdown; the texts in tables are escaped (:func:`markdown_cell`)."""
    texts: list[str] = []
    for piece in pieces:
        if isinstance(piece, Table):
            lines = [piece.heads, ["---"] * len(piece.heads), *piece.cells]
            table = "\n".join("| " + " | ".join(map(markdown_cell, line)) + " |" for line in lines)
            more = f"and {piece.more:,} more" if piece.more else ""
            texts += filter(None, (piece.title and f"### {piece.title}", table, more, piece.note))
        else:
            texts.append(piece)
    return "\n\n".join(texts) + "\n"


def markdown_cell(text: str) -> str:
    """Return a text for a cell or a line of Markdown: HTML and bars escaped, on one line."""
    return " ".join(escape(text, quote=False).replace("|", "\\|").split())


def _text(value: Any) -> str:
    if isinstance(value, float) or value is None:
        return number(value)
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def plain_name(name: str) -> str:
    """Return a reason or a class of TREC in words.

    >>> plain_name("too_few_hints"), plain_name("ENTY:ENTITY"), plain_name("country:Country")
    ('too few hints', 'entity', 'country')
    """
    trec = re.fullmatch(r"[A-Za-z]+:(\w[\w ,-]*)", name)
    return trec[1].lower() if trec else name.replace("_", " ")


def short_identity(identity: str) -> str:
    """Return a model's name without versions and hashes.

    >>> short_identity("learned/1@bedd40e61815+all-MiniLM-L6-v2@53aa51172d14/fp32")
    'learned/1'
    """
    return identity.partition("@")[0]


BASES = {"exact": "equals a gold answer", "no_answer": "no answer", "model": "the judge", "review": "people"}
"""What a verdict rests on, in words."""
VERDICTS = {True: "correct", False: "wrong", None: "unreadable"}
"""A judge's verdict in words."""
TABLE_1 = (
    ("questions", "questions", ",.0f"),
    ("passages", "passages", ",.0f"),
    ("question_words", "words per question", ",.2f"),
    ("passage_words", "words per passage", ",.2f"),
    ("answer_words", "words per valid answer", ",.2f"),
    ("gold_answer_words", "words per gold answer", ",.2f"),
    ("lexical_overlap", "lexical overlap of question and passage", ".4f"),
    ("answer_containment", "passages that hold an answer", ".4f"),
    ("semantic_similarity", "semantic similarity of question and passage", ".2f"),
)
"""Figures of the paper's table 1: field, name, form."""


def table_1(summary: Sequence[Mapping[str, Any]]) -> Table:
    """Return the paper's table 1, a column per split; ``summary``: of :mod:`quit.dataset.statistics`."""
    rows = [
        (name, *(number(row[key], form) for row in summary))
        for key, name, form in TABLE_1
        if any(row[key] is not None for row in summary)
    ]
    return Table("The dataset in figures (the paper's table 1)", ("", *(row["split"] for row in summary)), rows)


def percent(value: float | None) -> str:
    """Return a share of 1 as a percentage; a dash for None."""
    return number(value, ".1%")


def interval(row: Mapping[str, Any]) -> str:
    """Return the ends of an interval, shares ``low`` and ``high`` of 1, as percentages."""
    return f"{percent(row['low'])} to {percent(row['high'])}"


def number(value: float | None, form: str = "z,.2f", missing: str = "–") -> str:
    """Return a number, 0 without a sign; ``missing`` for None."""
    return missing if value is None else format(value, form)


def share(part: float, whole: float) -> str:
    """Return a part of a whole as a percentage; a dash where the whole is nothing."""
    return percent(part / whole if whole else None)

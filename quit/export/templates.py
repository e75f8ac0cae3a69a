"""The Markdown and Python templates of this package: how their texts are escaped, and what they can name besides their
values."""

from __future__ import annotations

import re
from collections import Counter
from html import unescape
from pathlib import Path
from typing import Any

import pyarrow as pa
from jinja2 import Environment, StrictUndefined, Template

from quit.dataset.dataset import FULLY
from quit.evaluate.labels import SPLITS
from quit.export.baselines import METRICS
from quit.render.table import markdown_cell, short_identity, table_1
from quit.review.report import audit_pieces
from quit.text.words import counted

LISTED = 6
"""Rows at most of what may be long: sources, people, differing labels. A card has at most 200 lines."""
SYSTEMS = 8
"""Systems at most of the baselines."""
MAX_CHARACTERS = 300
"""Characters at most of a text in the example."""
PAPER = "[Inferential Question Answering](https://doi.org/10.1145/3774904.3792653) (Mozafari et al., WWW 2026)"
_BINS = ("easy", "medium", "hard")


def fill_template(name: str, **values: Any) -> str:
    """Return a Markdown template of this package filled with values; no more than one blank line in a row."""
    return re.sub(r"\n{3,}", "\n\n", template(name).render(values)).strip() + "\n"


def template(name: str) -> Template:
    """Return a template of this package by its file's name."""
    return _TEMPLATES.from_string((Path(__file__).parent / name).read_text(encoding="utf-8"))


def cell(value: Any) -> str:
    """Return a value for a table or a line: HTML, bars and line ends escaped, a dash for None."""
    return "–" if value is None else markdown_cell(str(value))


def code(value: Any) -> str:
    """Return an id or a name as code: as :func:`cell`, without the characters that could end it."""
    return f"`{unescape(cell(re.sub('[`<>]', '', str(value))))}`"


def prose(value: str) -> str:
    """Return a source's or model's text for prose: cut, on one line, with Markdown's marks escaped."""
    cut = value if len(value) <= MAX_CHARACTERS else value[:MAX_CHARACTERS] + "..."
    return cell("".join(f"\\{char}" if char in "\\`*_[]#~" else char for char in cut))


def _producers(identities: list[str]) -> str:
    names = dict.fromkeys(map(short_identity, identities))
    return "by " + ", ".join(code(name) for name in list(names)[:3]) if names else "by an unknown model"


def _shares(table: pa.Table, column: str) -> list[tuple[Any, float, int]]:
    """Return each group of a column with its share of label 2 and the number of its passages; bins of difficulty from
    easy to hard. ``table`` also has split, label, share and passages."""
    rows = [row for row in table.to_pylist() if row["split"] == "all"]
    passages: Counter[Any] = Counter()
    for row in rows:
        passages[row[column]] += row["passages"]
    fully = [row for row in rows if row["label"] == FULLY]
    fully.sort(key=lambda row: _BINS.index(row[column]) if row[column] in _BINS else 0)
    return [(row[column], row["share"], passages[row[column]]) for row in fully]


_TEMPLATES = Environment(trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined)
_TEMPLATES.filters |= {
    "cell": cell,
    "code": code,
    "prose": prose,
    "short": lambda identity: code(short_identity(identity)),
    "counted": counted,
    "n": "{:,}".format,
    "percent": "{:.1%}".format,
    "figure": lambda value, form, missing="–": missing if value is None else form.format(value),
}
_TEMPLATES.globals |= {
    "names": lambda readers: ", ".join(code(info.name) for info in readers),
    "producers": _producers,
    "table_1": table_1,
    "shares": _shares,
    "audit": audit_pieces,
    "activity": lambda name, caller: caller(),
    **{"METRICS": METRICS, "SPLITS": SPLITS, "PAPER": PAPER, "LISTED": LISTED, "SYSTEMS": SYSTEMS},
}

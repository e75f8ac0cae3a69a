"""Every table and figure of the papers as an object: the numbers as published, the commands that make ours, and how its
rows and columns map to what our runs wrote.

Declared in ``papers.toml`` (its head has the rules) and ``published/ID.csv``, the tables as printed. A value that our
copy of a paper lacks is empty.
"""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

from quit.errors import SettingsError, did_you_mean

FOLDER = Path(__file__).parent
BETWEEN = " / "
"""Between the parts of a column's head."""
Selector = tuple[tuple[str, str], ...]
"""Keys of our rows and the patterns that they have to fit: ``*`` is any text, ``|`` stands between alternatives."""


@dataclass(frozen=True)
class Run:
    """A command. ``section``: the section of the page *fidelity* that prints it."""

    name: str
    command: str
    section: str
    note: str = ""


@dataclass(frozen=True)
class Row:
    """A row as published. ``why``: why it is not run here; empty where it is."""

    labels: tuple[str, ...]
    published: tuple[str, ...]
    selector: Selector
    why: str


@dataclass(frozen=True)
class Item:
    """A table or figure; one without numbers in print has no rows. ``heads``: of the labels, then of the ``columns``,
    each of which has a selector. ``parts``: what each run is of (a dataset), where several runs make the table.
    ``counted``: whether ours follow from the passages of a build or release (:mod:`quit.qa.papers.convergence`)."""

    id: str
    title: str
    runs: tuple[Run, ...]
    why: str
    note: str
    heads: tuple[str, ...] = ()
    columns: tuple[Selector, ...] = ()
    rows: tuple[Row, ...] = ()
    parts: tuple[str, ...] = ()
    counted: bool = False

    @property
    def here(self) -> str:
        """What of it can be run here, in words."""
        if self.why:
            return f"not run here: {self.why}"
        rows = [row for row in self.rows if not row.why]
        reasons = dict.fromkeys(row.why for row in self.rows if row.why)
        counts = f"{len(rows)} of {len(self.rows)} rows" if reasons else "run here"
        return "; ".join([counts, *(f"not run here: {why}" for why in reasons)])

    @property
    def about(self) -> str:
        """What can be run here, and what else there is to know."""
        return ". ".join(filter(None, (self.here, self.note)))

    @property
    def facts(self) -> dict[str, str | list[str]]:
        """The table for scripts; ``commands``: of its runs."""
        commands = [run.command for run in self.runs]
        return {"id": self.id, "title": self.title, "here": self.here, "note": self.note, "commands": commands}


def item(name: str) -> Item:
    """Return a table or figure by its id, such as ``quit-5``. Raises :class:`SettingsError` where there is none."""
    by_id = {each.id: each for each in items()}
    if name not in by_id:
        raise SettingsError(f"The papers have no table or figure {name!r}.{did_you_mean(name, list(by_id))}")
    return by_id[name]


@cache
def items() -> tuple[Item, ...]:
    """Return all tables and figures, in the papers' order."""
    return tuple(
        _item(f"{name}-{key}", paper, values)
        for name, paper in _papers().items()
        for key, values in paper["items"].items()
    )


def runs() -> list[Run]:
    """Return all commands, in the order in which they run."""
    return [run for paper in _papers().values() for run in _runs(paper).values()]


@cache
def _papers() -> dict[str, dict[str, Any]]:
    return tomllib.loads((FOLDER / "papers.toml").read_text(encoding="utf-8"))


def _runs(paper: Mapping[str, Any]) -> dict[str, Run]:
    return {name: Run(name, **{"section": paper["section"], **values}) for name, values in paper["runs"].items()}


def _item(item_id: str, paper: Mapping[str, Any], values: Mapping[str, Any]) -> Item:
    runs_of = tuple(_runs(paper)[name] for name in values.get("runs", ()))
    facts = (item_id, values["title"], runs_of, values.get("why", ""), values.get("note", ""))
    path = FOLDER / "published" / f"{item_id}.csv"
    if not path.is_file():
        return Item(*facts)
    with path.open(newline="", encoding="utf-8") as file:
        heads, *lines = csv.reader(file)
    words, count = {**paper["words"], **values.get("words", {})}, values.get("labels", 1)

    def name(head: str, label: str) -> dict[str, str]:
        return {head.lower(): label} if head.lower() in paper.get("keys", ()) else {}

    def row(labels: list[str], cells: list[str]) -> Row:
        of_all = words.get(BETWEEN.join(labels))
        of_each = [words.get(label, name(head, label)) for head, label in zip(heads, labels, strict=False)]
        meanings = [values.get("where", {}), *([of_all] if of_all else of_each)]
        why = next((text for text in (values.get("why"), *meanings) if isinstance(text, str)), "")
        return Row(tuple(labels), tuple(cells), () if why else _selector(meanings), why)

    rows = tuple(row(line[:count], line[count:]) for line in lines)
    where = () if lines else (values.get("where", {}),)
    columns = tuple(
        _selector([*where, *(words.get(part, {}) for part in head.split(BETWEEN))]) for head in heads[count:]
    )
    labels = chain(heads, *(each.labels for each in rows))
    parts = dict.fromkeys(part for label in labels for part in label.split(BETWEEN) if "part" in words.get(part, ()))
    return Item(*facts, tuple(heads), columns, rows, (*parts,), values.get("counted", False))


def _selector(meanings: list[Mapping[str, Any]]) -> Selector:
    return tuple((key, str(pattern)) for meaning in meanings for key, pattern in meaning.items())

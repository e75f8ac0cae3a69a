"""A published table beside what our runs wrote."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import chain, product
from pathlib import Path
from typing import Any, TypedDict

from quit.common.files import read_json
from quit.common.parquet import rows_of
from quit.errors import InputError
from quit.qa.papers.convergence import design_rows
from quit.qa.papers.items import Item, Row, Selector
from quit.render.table import Table, number

FILES = ("results.parquet", "figures.parquet", "bandits.json", "reports.json", "complexity.json", "release.json")
"""What runs write; ``quit sunar run`` also ``VARIANT/scores.json``."""
NUMBERED = ("k", "budget")
"""Numbers that tell rows apart."""
Record = tuple[dict[str, str], float]
"""A number of ours with what tells it apart: the texts beside and above it, ``field`` (its path in the file),
``variant`` (the file's folder) and ``part``."""


@dataclass(frozen=True)
class ComparedRow:
    """A row as published, with our values, one per column. ``missing``: why it has none, empty where it has."""

    row: Row
    here: tuple[float | None, ...]
    missing: str

    def differences(self) -> list[float | None]:
        """Return ours minus the published ones, rounded as these are; None where either is missing."""
        pairs = zip(self.row.published, self.here, strict=True)
        return [
            None if here is None or not text else round(here - _number(text), _decimals(text)) for text, here in pairs
        ]


def compare(item: Item, folders: Sequence[tuple[str, Path]]) -> list[ComparedRow]:
    """Return a table's rows with our values from the folders (or files of JSON) of runs, each with the part of the
    table that it is of, empty where the table has no parts. Where no value of the paper is known, a row for each of
    ours.

    A part names all that the run is of, one label per axis of the table: ``MQA gpt-4o-mini``. Raises
    :class:`InputError` for a place that no run wrote, for a folder without a part where the table has some, and with
    one that selects nothing in the table.
    """
    selectors = chain(item.columns, (row.selector for row in item.rows))
    patterns = {pattern.lower() for selector in selectors for key, pattern in selector if key == "part"}
    for part, path in folders:
        if item.parts and not part:
            raise InputError(f"{item.id} is of several runs: say of what {path} is, {item.parts[0]}={path}")
        if part and not any(fnmatchcase(part.lower(), pattern) for pattern in patterns):
            remedy = f"its parts are {', '.join(item.parts)}" if item.parts else f"it has no parts: name {path} alone"
            raise InputError(f"{item.id} has no part {part!r}; {remedy}.")
    of_folders = (
        _numbers(design_rows(path), {}, "") if item.counted else records_of(path, part) for part, path in folders
    )
    records = [*chain.from_iterable(of_folders)]
    rows = []
    for row in item.rows or _own_rows(item, records):
        here = tuple(None if row.why else _value(records, row.selector + column) for column in item.columns)
        nothing = "no run has it" if folders and here.count(None) == len(here) else ""
        rows.append(ComparedRow(row, here, row.why or nothing))
    return rows


def _own_rows(item: Item, records: Iterable[Record]) -> list[Row]:
    """Return a row without published values for each of our labels of a table with columns."""
    keys = [head.lower() for head in item.heads[: len(item.heads) - len(item.columns)]]
    labels = dict.fromkeys(tuple(names[key] for key in keys) for names, _ in records if names.keys() >= {*keys})
    return [Row(of, ("",) * len(item.columns), tuple(zip(keys, of, strict=True)), "") for of in labels if item.columns]


def records_of(path: Path, part: str = "") -> list[Record]:
    """Return every number that a run wrote. Raises :class:`InputError` where there is no run."""
    files = [path] if path.is_file() else [path / name for name in FILES] + sorted(path.glob("*/scores.json"))
    records: list[Record] = []
    for file in filter(Path.is_file, files):
        rows = rows_of(file).to_pylist() if file.suffix == ".parquet" else read_json(file)
        records += _numbers(rows, {"variant": file.parent.name, "part": part}, "")
    if not records:
        raise InputError(f"{path} has no results of a run: it lacks {', '.join(FILES)} and VARIANT/scores.json.")
    return records


def _numbers(value: Any, names: dict[str, str], field: str) -> Iterator[Record]:
    if isinstance(value, dict):
        texts = {key: text for key, text in value.items() if isinstance(text, str)}
        texts |= {key: f"{value[key]:g}" for key in NUMBERED if isinstance(value.get(key), int | float)}
        for key, below in value.items():
            yield from _numbers(below, names | texts, f"{field}.{key}".removeprefix("."))
    elif isinstance(value, list):
        for each in value:
            yield from _numbers(each, names, field)
    elif isinstance(value, int | float):
        yield names | {"field": field}, float(value)


def _value(records: Iterable[Record], selector: Selector) -> float | None:
    """Return our number, the first that fits the first alternatives; None where none does."""
    times = float(dict(selector).get("times", 1))
    pairs = [(key, pattern.lower().split("|")) for key, pattern in selector if key != "times"]
    for patterns in product(*(alternatives for _, alternatives in pairs)):
        conditions = list(zip((key for key, _ in pairs), patterns, strict=True))
        for names, value in records:
            if all(fnmatchcase(names.get(key, "").lower(), pattern) for key, pattern in conditions):
                return value * times
    return None


def _number(text: str) -> float:
    return float(text.partition(" ")[0])


def _decimals(text: str) -> int:
    """Return how many decimals a published value has; 3 for a blank."""
    return len(text.partition(" ")[0].partition(".")[2]) if text else 3


class ComparedCell(TypedDict):
    """A value as published, ours, and the difference (:meth:`ComparedRow.differences`)."""

    published: str
    here: float | None
    difference: float | None


class RowFacts(TypedDict):
    """A compared row for scripts. ``values``: by the column's head."""

    labels: list[str]
    missing: str
    values: dict[str, ComparedCell]


def row_facts(item: Item, rows: Sequence[ComparedRow]) -> list[RowFacts]:
    """Return the comparison for scripts."""
    heads = item.heads[len(item.heads) - len(item.columns) :]
    facts: list[RowFacts] = []
    for compared in rows:
        columns = zip(heads, compared.row.published, compared.here, compared.differences(), strict=True)
        values = {head: ComparedCell(published=text, here=here, difference=by) for head, text, here, by in columns}
        facts.append({"labels": [*compared.row.labels], "missing": compared.missing, "values": values})
    return facts


def pieces(item: Item, rows: Sequence[ComparedRow]) -> list[Table | str]:
    """Return the table in the paper's shape, ours and the difference below what is published, and which rows lack ours,
    with the reason."""
    if not rows:
        return [f"{item.id}: {item.title}. {item.about}"]
    count = len(item.heads) - len(item.columns)
    lines: list[tuple[str, ...]] = []
    missing: dict[str, list[str]] = {}
    for compared in rows:
        cells, labels = compared.row.published, compared.row.labels
        if item.rows:
            lines.append((*labels, "paper", *(text or "–" for text in cells)))
            labels = ("",) * count
        if any(value is not None for value in compared.here):
            ours = (("here", "", compared.here), ("difference", "+", compared.differences()))
            for name, sign, values in ours if item.rows else ours[:1]:
                forms = [f"{sign},.{_decimals(text)}f" for text in cells]
                lines.append((*labels, name, *map(number, values, forms)))
        if compared.missing:
            missing.setdefault(compared.missing, []).append(" + ".join(compared.row.labels))
    heads = (*item.heads[:count], "", *item.heads[count:])
    table = Table(f"{item.id}: {item.title}", heads, lines, text=tuple(range(1, count + 1)), note=item.note)
    return [table, *(f"{', '.join(labels)}: {why}" for why, labels in missing.items())]

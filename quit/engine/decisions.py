"""What people decided that a build follows: overrides in force, and the reviews that labels rest on."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from quit.common.shapes import read_json
from quit.engine.location import Location

KEY = ("kind", "question_id", "hint_id", "span", "answer")
"""Columns that say what an override is about."""
WITHDRAWN = "withdrawn"


def in_force(log: pa.Table, kind: str | None = None) -> pa.Table:
    """Return the rows of a log of overrides that count (of one kind): the last of each key, unless it is a
    withdrawal."""
    last: dict[tuple, int] = {}
    for position, row in enumerate(log.select([*KEY, "decision"]).to_pylist()):
        key = tuple(row[name] for name in KEY)
        if row["decision"] == WITHDRAWN:
            last.pop(key, None)
        elif kind in (None, row["kind"]):
            last[key] = position
    return log.take(pa.array(sorted(last.values()), pa.int64()))


def contents(rows: pa.Table) -> list[list[str | None]]:
    """Return what overrides say, sorted, without ids, names, reasons and times: what a fingerprint has to know."""
    texts = [[row[name] for name in (*KEY, "decision")] for row in rows.select([*KEY, "decision"]).to_pylist()]
    return sorted(texts, key=lambda row: [text or "" for text in row])


def applied_reviews(location: Location) -> list[Path]:
    """Return the parts of the log of reviews that labels rest on (none: people's verdicts are not applied)."""
    folder = location.path / "reviews"
    return [folder / name for name in read_json(folder / "applied.json", {"parts": []})["parts"]]

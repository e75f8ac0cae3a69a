"""How many passages readers were asked about, where that is not all (``labels.partial``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from quit.engine.reading import TableReader
from quit.render.table import Table, share


class AskedPassages(TypedDict):
    """A reader, and of how many ``passages`` it was asked about ``asked``."""

    reader: str
    asked: int
    passages: int


def partly_asked(workspace: TableReader) -> list[AskedPassages]:
    """Return a row for each reader; none where every reader was asked about every passage."""
    rows: list[AskedPassages] = []
    for run in (run for run in workspace.state if run.startswith("read:")):
        column = workspace.read("answers", runs=[run], columns=["asked"])["asked"]
        count = sum(chunk.true_count for chunk in column.chunks)
        rows.append({"reader": run.removeprefix("read:"), "asked": count, "passages": len(column)})
    return rows if any(row["asked"] < row["passages"] for row in rows) else []


def asked_tables(rows: Sequence[AskedPassages]) -> list[Table]:
    """Return what :func:`partly_asked` says as a table, if anything."""
    cells = [(row["reader"], row["asked"], row["passages"], share(row["asked"], row["passages"])) for row in rows]
    return [Table("Passages asked", ("reader", "asked", "of", "share"), cells)] if rows else []

"""About which passages readers were asked, where that is not all (``labels.partial``)."""

from __future__ import annotations

from typing import Any

from quit.engine.reading import TableReader
from quit.render.table import Table, share


def asked(workspace: TableReader) -> list[dict[str, Any]]:
    """Return rows of reader, asked and passages; none where every reader was asked about every passage."""
    rows = []
    for run in (run for run in workspace.state if run.startswith("read:")):
        column = workspace.read("answers", runs=[run], columns=["asked"])["asked"]
        count = sum(chunk.true_count for chunk in column.chunks)
        rows.append({"reader": run.removeprefix("read:"), "asked": count, "passages": len(column)})
    return rows if any(row["asked"] < row["passages"] for row in rows) else []


def asked_tables(rows: list[dict[str, Any]]) -> list[Table]:
    """Return what :func:`asked` says as a table, if anything."""
    cells = [
        (row["reader"], f"{row['asked']:,}", f"{row['passages']:,}", share(row["asked"], row["passages"]))
        for row in rows
    ]
    return [Table("Passages asked", ("reader", "asked", "of", "share"), cells)] if rows else []

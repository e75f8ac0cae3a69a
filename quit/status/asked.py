"""About which passages readers were asked, where that is not all (``labels.partial``)."""

from __future__ import annotations

from typing import Any

from quit.engine.reading import TableReader
from quit.render.table import Table, share


def asked(workspace: TableReader) -> list[dict[str, Any]]:
    """Return rows of reader, asked and passages; none where every reader was asked about every passage."""
    sql = "SELECT reader, count(*) FILTER (asked) AS asked, count(*) AS passages FROM answers GROUP BY 1 ORDER BY 1"
    rows = [dict(zip(("reader", "asked", "passages"), row, strict=True)) for row in workspace.rows(sql, ["answers"])]
    if all(row["asked"] == row["passages"] for row in rows):
        return []
    order = {run.removeprefix("read:"): position for position, run in enumerate(workspace.state)}
    return sorted(rows, key=lambda row: order.get(row["reader"], len(order)))


def asked_tables(rows: list[dict[str, Any]]) -> list[Table]:
    """Return what :func:`asked` says as a table, if anything."""
    cells = [
        (row["reader"], f"{row['asked']:,}", f"{row['passages']:,}", share(row["asked"], row["passages"]))
        for row in rows
    ]
    return [Table("Passages asked", ("reader", "asked", "of", "share"), cells)] if rows else []

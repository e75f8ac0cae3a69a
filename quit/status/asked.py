"""About which passages readers were asked, where that is not all (``labels.partial``)."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from quit.engine.reading import TableReader
from quit.evaluate.labels import labels_by_split
from quit.render.table import Table, share


def asked(workspace: TableReader) -> dict[str, Any] | None:
    """Return ``readers`` (reader, asked, passages), ``labels`` (by split, with predicted ones) and ``looks`` (rows of
    ``selection_rounds``); None where every reader was asked about every passage."""
    sql = "SELECT reader, count(*) FILTER (asked), count(*) FROM answers GROUP BY 1 ORDER BY 1"
    rows = workspace.rows(sql, ["answers"])
    if all(count == passages for _, count, passages in rows):
        return None
    order = {run.removeprefix("read:"): position for position, run in enumerate(workspace.state)}
    rows.sort(key=lambda row: order.get(row[0], len(order)))
    selection = workspace.read("selection", columns=["question_id", "reason"])
    labels = workspace.read("labels", columns=["question_id", "label"])
    by_split = labels_by_split(workspace.read("splits"), labels, selection)
    return {
        "readers": [dict(zip(("reader", "asked", "passages"), row, strict=True)) for row in rows],
        "labels": [asdict(row) for row in by_split] if selection["reason"].null_count else [],
        "looks": workspace.read("selection_rounds").to_pylist(),
    }


def asked_tables(facts: dict[str, Any] | None) -> list[Table]:
    """Return what :func:`asked` says as tables."""
    if facts is None:
        return []
    readers = [
        (row["reader"], f"{row['asked']:,}", f"{row['passages']:,}", share(row["asked"], row["passages"]))
        for row in facts["readers"]
    ]
    labels = [
        (row["split"], f"{row['passages'] - row['predicted']:,}", f"{row['predicted']:,}") for row in facts["labels"]
    ]
    looks = [
        (
            *(f"{row[name]:,}" for name in ("round", "asked", "audit", "missed", "false")),
            *(f"{row[name]:.2%}" for name in ("missed_bound", "false_bound")),
        )
        for row in facts["looks"]
    ]
    tables = [
        Table("Passages asked", ("reader", "asked", "of", "share"), readers),
        Table("Labels", ("split", "asked", "predicted"), labels),
        Table(
            "Looks at the audit", ("look", "asked", "audit", "missed", "false", "missed up to", "false up to"), looks
        ),
    ]
    return [table for table in tables if table.rows]

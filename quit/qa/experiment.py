"""The files in an experiment's folder, for all four systems: tables as Parquet or CSV, rows as JSON Lines."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from quit.common.files import replacing, write_lines, writing
from quit.common.parquet import write_parquet


def write_table(path: Path, table: pa.Table) -> None:
    """Write a table as Parquet. Raises :class:`quit.errors.WorkspaceError` where the disk refuses."""
    with writing(path), replacing(path) as temporary:
        write_parquet(temporary, table)


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write rows as JSON Lines. Raises as :func:`write_table`."""
    write_lines(path, (json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows with the same keys as CSV. Raises as :func:`write_table`."""
    with writing(path), replacing(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        table.writeheader()
        table.writerows(rows)

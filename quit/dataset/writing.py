"""The tables of a release, written with the same bytes for the same rows."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa

from quit.common.parquet import parquet_writer
from quit.dataset.files import ROWS_A_GROUP, contract


def write_table(target: Path, name: str, pieces: Iterable[pa.Table]) -> int:
    """Write a table and return its number of rows."""
    with TableWriter(target, contract(name).schema) as writer:
        for piece in pieces:
            writer.write(piece)
    return writer.rows


class TableWriter:
    """Writes a table piece by piece. The bytes depend only on the rows, not on the pieces."""

    def __init__(self, target: Path, schema: pa.Schema) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        self.rows = 0
        self._schema, self._held = schema, schema.empty_table()
        self._writer = parquet_writer(target, schema, store_schema=True)

    def __enter__(self) -> TableWriter:
        return self

    def write(self, piece: pa.Table) -> None:
        """Take some rows."""
        self._held = pa.concat_tables([self._held, piece.cast(self._schema)])
        while len(self._held) >= ROWS_A_GROUP:
            self._write_group(self._held.slice(0, ROWS_A_GROUP))
            self._held = self._held.slice(ROWS_A_GROUP)

    def _write_group(self, rows: pa.Table) -> None:
        self._writer.write_table(rows.combine_chunks(), row_group_size=len(rows))
        self.rows += len(rows)

    def __exit__(self, *error: object) -> None:
        if len(self._held) and error[0] is None:
            self._write_group(self._held)
        self._writer.close()

"""A table's contract: its name, key and columns, and their Arrow schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa


@dataclass(frozen=True)
class Column:
    """One column: ``doc`` gives meaning and unit."""

    name: str
    type: pa.DataType
    doc: str
    nullable: bool = False


@dataclass(frozen=True)
class TableContract:
    """One table: the stage that makes it, its key and its columns.

    ``log``: people append to it, no stage makes it; rows are never changed and their order is that of writing.
    ``released``: every release holds it.
    """

    name: str
    stage: str
    key: tuple[str, ...]
    doc: str
    columns: tuple[Column, ...]
    log: bool = False
    released: bool = False

    @cached_property
    def schema(self) -> pa.Schema:
        """The Arrow schema, with the table's name and doc as metadata."""
        fields = [pa.field(column.name, column.type, nullable=column.nullable) for column in self.columns]
        return pa.schema(fields, metadata={"table": self.name, "stage": self.stage})

    @property
    def grows(self) -> bool:
        """Whether people's work appends to it (a log, or ``reviews``), so that its parts are never built again."""
        return self.log or self.name == "reviews"

    @property
    def shape(self) -> list[list[object]]:
        """Name, type and nullability of every column, as plain values: part of the fingerprint of the stage that makes
        it."""
        return [[column.name, str(column.type), column.nullable] for column in self.columns]

    def from_columns(self, columns: Mapping[str, Any]) -> pa.Table:
        """Return an Arrow table of these columns, in the contract's order and types; others are left out."""
        return pa.table({name: columns[name] for name in self.schema.names}).cast(self.schema)

    def from_rows(self, rows: list[dict]) -> pa.Table:
        """Return an Arrow table of ``rows`` (dicts keyed by column); a missing nullable column is null.

        Raises ``pa.ArrowInvalid`` when a value does not fit or a required one is missing.
        """
        if not rows:
            return self.schema.empty_table()
        table = pa.Table.from_pylist(rows, schema=self.schema)
        table.validate(full=True)
        for column in self.columns:
            if not column.nullable and table.column(column.name).null_count:
                raise pa.ArrowInvalid(f"{self.name}.{column.name} must not be null")
        return table

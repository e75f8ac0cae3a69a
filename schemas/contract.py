"""What a table's contract is: its name, key and columns, and the Arrow schema that follows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa


@dataclass(frozen=True)
class Column:
    """One column: ``doc`` gives meaning and unit."""

    name: str
    type: pa.DataType
    doc: str
    nullable: bool = False


@dataclass(frozen=True)
class Table:
    """One table: the stage that makes it, its key and its columns.

    ``log``: people append to it, no stage makes it; rows are never changed and their order is that of writing. A later
    version of a log (and of ``reviews``) may only add columns that can be null: :meth:`conform` reads older parts.

    ``former``: the columns under which earlier formats kept the same rows. Fingerprints still name these, because what
    was made from the rows is the same. ``beside``: the table whose rows this one completes: a stage that reads or makes
    the one reads or makes both, and fingerprints name the other alone.
    """

    name: str
    stage: str
    key: tuple[str, ...]
    doc: str
    columns: tuple[Column, ...]
    log: bool = False
    former: tuple[Column, ...] = ()
    beside: str | None = None

    @cached_property
    def schema(self) -> pa.Schema:
        """The Arrow schema, with the table's name and doc as metadata."""
        return self._schema(self.columns)

    @cached_property
    def former_schema(self) -> pa.Schema:
        """The Arrow schema of earlier formats; today's where it has not changed."""
        return self._schema(self.former or self.columns)

    def _schema(self, columns: tuple[Column, ...]) -> pa.Schema:
        fields = [pa.field(column.name, column.type, nullable=column.nullable) for column in columns]
        return pa.schema(fields, metadata={"table": self.name, "stage": self.stage})

    @property
    def grows(self) -> bool:
        """Whether people's work appends to it (a log, or ``reviews``), so that older parts are never built again."""
        return self.log or self.name == "reviews"

    @property
    def shape(self) -> list[list[object]]:
        """Name, type and nullability of every column, as plain values: part of the fingerprint of the stage that makes
        it."""
        return [[column.name, str(column.type), column.nullable] for column in self.former or self.columns]

    def conform(self, rows: pa.Table) -> pa.Table:
        """Return rows that an earlier version of this table wrote under today's schema: columns that came later are
        null.

        Raises ``pa.ArrowInvalid`` for a column that is not in the schema (a newer program's) and for a required one
        that is missing.
        """
        unknown = [name for name in rows.column_names if name not in self.schema.names]
        if unknown:
            raise pa.ArrowInvalid(f"{self.name} has no column {unknown[0]}: a newer program wrote this")
        columns = []
        for field in self.schema:
            if field.name in rows.column_names:
                columns.append(rows.column(field.name).cast(field.type))
            elif field.nullable:
                columns.append(pa.nulls(len(rows), field.type))
            else:
                raise pa.ArrowInvalid(f"{self.name}.{field.name} is missing")
        return pa.table(columns, schema=self.schema)

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

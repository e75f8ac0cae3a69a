"""A table's contract: its name, key and columns, and their Arrow schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property, partial
from typing import Any

import pyarrow as pa

from quit.common.rows import Row


@dataclass(frozen=True)
class Column:
    """One column: ``doc`` gives meaning and unit; ``values``: all that it may hold, where that is a set of names."""

    name: str
    type: pa.DataType
    doc: str
    _: KW_ONLY
    nullable: bool = False
    values: tuple[str | int, ...] = ()


Nullable = partial(Column, nullable=True)
"""A column that may be null."""


@dataclass(frozen=True)
class Reference:
    """Columns of a row that are, where none is null, those of a row of another table; ``gate``: what a fault fails;
    ``rows``: of which rows, in SQL."""

    columns: tuple[str, ...]
    table: str
    gate: str = "schema"
    rows: str = "true"


@dataclass(frozen=True)
class TableContract:
    """One table: the stage that makes it, its key and its columns.

    ``log``: people append to it, no stage makes it; rows are never changed and their order is that of writing.
    ``released``: every release holds it.

    What holds among the tables of a release (:mod:`quit.dataset.check`): ``passages``: it has a row for every passage
    of a question, in depth-first order, of answers for each reader; ``required``: tables whose rows
    all have a row here; ``references``: tables that have a row for each row here; ``follows``: column -> what it must
    be.

    Conditions (``rows``, ``follows``) are DuckDB's. Beside the tables (``answers`` and ``distinct_answers`` of all
    readers together, ``file``: that of their file) they see

    - ``this``: the table whose row it is; ``getvariable`` of ``hints`` (that make passages, at most) and ``given``
      (whether these are passages);
    - ``changes`` also has ``label``, its passage's;
    - ``answers``: one row for those that agree in what conditions say; ``says``: whether the reply is more than an
      empty ``NO ANSWER``;
    - ``distinct_answers`` also has ``passages`` (of which its reader was asked about), ``labels`` (whether a labeler
      gave it) and ``place`` (that of its first passage among those of the question's replies);
    - ``readers`` (reader, producer) and ``permutations`` (permutation, subset, hints);
    - ``gold``: gold answers (question_id, answer, answer_key) that people did not remove;
    - ``judged``: answers (question_id, answer_key) that have a verdict;
    - ``right_labelers``: question_id, permutation, and labelers whose answer is valid, where there are any;
    - ``hint_roles_again``, ``question_roles_again``: roles that follow from ``labels``;
    - ``answer_key_of(answer)``, ``key_of(question)``, ``draw_of(content_key)``.
    """

    name: str
    _: KW_ONLY
    stage: str
    key: tuple[str, ...]
    doc: str
    columns: tuple[Column, ...]
    log: bool = False
    released: bool = False
    passages: bool = False
    required: tuple[Reference, ...] = ()
    references: tuple[Reference, ...] = ()
    follows: Mapping[str, str] = field(default_factory=dict)

    @property
    def unchecked(self) -> list[str]:
        """Columns of which nothing is checked but the type."""
        named = {*self.key, *self.follows, *(name for each in self.references for name in each.columns)}
        return [column.name for column in self.columns if column.name not in named and not column.values]

    @cached_property
    def schema(self) -> pa.Schema:
        """The Arrow schema, with the table's name and doc as metadata."""
        fields = [pa.field(column.name, column.type, nullable=column.nullable) for column in self.columns]
        return pa.schema(fields, metadata={"table": self.name, "stage": self.stage})

    @property
    def shape(self) -> list[list[object]]:
        """Name, type and nullability of every column, as plain values: part of the fingerprint of the stage that makes
        it."""
        return [[column.name, str(column.type), column.nullable] for column in self.columns]

    def from_columns(self, columns: Mapping[str, Any]) -> pa.Table:
        """Return an Arrow table of these columns, in the contract's order and types; others are left out."""
        return pa.table({name: columns[name] for name in self.schema.names}).cast(self.schema)

    def from_rows(self, rows: list[Row]) -> pa.Table:
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

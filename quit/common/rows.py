"""Rows in Python: of some columns of a table, of an SQL query, and by a key."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

if TYPE_CHECKING:
    import duckdb

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


def tuples(table: pa.Table | pa.RecordBatch, *columns: str) -> Iterator[tuple[Any, ...]]:
    """Return the rows of some columns, each as a tuple in the order of ``columns``. Raises ``KeyError`` for a column
    that the table lacks."""
    return zip(*(table.column(name).to_pylist() for name in columns), strict=True)


def sql_rows(connection: duckdb.DuckDBPyConnection, sql: str, params: object = None) -> list[dict[str, Any]]:
    """Return the rows of an SQL query, by column. ``params``: of the query, by place or by name."""
    return connection.sql(sql, params=params).to_arrow_table().to_pylist()


def grouped(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """Return key -> the values that come with it; keys and values are in the order in which they come."""
    groups: dict[K, list[V]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups

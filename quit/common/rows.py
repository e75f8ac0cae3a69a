"""Rows in Python: of some columns of a table, of an SQL query, and by a key."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

Row = dict[str, Any]
"""A row of a table or a query, by column: a table's contract says which, a query itself."""
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


def tuples(table: pa.Table | pa.RecordBatch, *columns: str) -> Iterator[tuple[Any, ...]]:
    """Return the rows of some columns, each as a tuple in the order of ``columns``. Raises ``KeyError`` for a column
    that the table lacks."""
    return zip(*(table.column(name).to_pylist() for name in columns), strict=True)


def cursor() -> duckdb.DuckDBPyConnection:
    """Return a connection to the process's own database in memory, since opening one takes 20 ms; each has its own
    temporary views and tables."""
    return _database(os.getpid()).cursor()


@cache
def _database(process: int) -> duckdb.DuckDBPyConnection:
    """Return a process's database. A forked child opens its own: the parent's threads do not survive the fork."""
    import duckdb

    return duckdb.connect()


def limited_database(memory_mb: int) -> duckdb.DuckDBPyConnection:
    """Return a new database in memory that takes at most ``memory_mb``, in MB."""
    import duckdb

    return duckdb.connect(config={"memory_limit": f"{memory_mb}MB"})


def sql_rows(connection: duckdb.DuckDBPyConnection, sql: str, params: object = None) -> list[Row]:
    """Return the rows of an SQL query, by column. ``params``: of the query, by place or by name."""
    return connection.sql(sql, params=params).to_arrow_table().to_pylist()


def grouped(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """Return key -> the values that come with it; keys and values are in the order in which they come."""
    groups: dict[K, list[V]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def first_by(pairs: Iterable[tuple[K, V]]) -> dict[K, V]:
    """Return key -> the first value that comes with it; keys are in the order in which they first come."""
    values: dict[K, V] = {}
    for key, value in pairs:
        values.setdefault(key, value)
    return values

"""Rows in Python: of some columns of a table, and by a key."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Any, TypeVar

import pyarrow as pa

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


def tuples(table: pa.Table | pa.RecordBatch, *columns: str) -> Iterator[tuple[Any, ...]]:
    """Return the rows of some columns, each as a tuple in the order of ``columns``."""
    return zip(*(table.column(name).to_pylist() for name in columns), strict=True)


def grouped(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """Return key -> the values that come with it; keys and values are in the order in which they come."""
    groups: dict[K, list[V]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups

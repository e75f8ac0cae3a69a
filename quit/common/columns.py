"""Text columns with few distinct values, plain or dictionary-encoded; each distinct value is processed once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quit.common.ids import content_hash

_HASHED_ROWS = 1 << 14


class Runs(NamedTuple):
    """Runs of equal values of a column: of each its value, its first row and how many rows it has (int64, shape
    (runs,))."""

    values: list[str]
    starts: np.ndarray
    lengths: np.ndarray


def runs(column: pa.ChunkedArray) -> Runs:
    """Return the runs of equal values."""
    values: list[str] = []
    starts: list[int] = []
    base = 0
    for chunk in column.chunks:
        if not len(chunk):
            continue
        encoded = _encoded(chunk)
        codes = encoded.indices.to_numpy(zero_copy_only=False)
        first = np.concatenate([[0], np.flatnonzero(np.diff(codes)) + 1])
        of_chunk = encoded.dictionary.take(pa.array(codes[first])).to_pylist()
        skip = 1 if values and of_chunk[0] == values[-1] else 0  # a run may continue in the next chunk
        values += of_chunk[skip:]
        starts += (first[skip:] + base).tolist()
        base += len(chunk)
    bounds = np.array([*starts, base], dtype=np.int64)
    return Runs(values, bounds[:-1], np.diff(bounds))


def first_matches(rows: pa.Table, table: pa.Table, columns: Sequence[str]) -> np.ndarray:
    """Return for each row of ``rows`` the first row of ``table`` with the same texts in ``columns``: int64, shape
    (rows of ``rows``,), -1 where there is none."""
    values_of = [(plain(table.column(name).unique()), name) for name in columns]
    row_keys, table_keys = (
        np.ravel_multi_index(
            [positions_in(each.column(name), values) + 1 for values, name in values_of],
            [len(values) + 1 for values, _ in values_of],
        )
        for each in (rows, table)
    )
    keys, first = np.unique(table_keys, return_index=True)
    if not len(keys):
        return np.full(len(rows), -1, dtype=np.int64)
    positions = np.minimum(np.searchsorted(keys, row_keys), len(keys) - 1)
    return np.where(keys[positions] == row_keys, first[positions], -1)


def is_in(column: pa.ChunkedArray, values: pa.Array) -> pa.ChunkedArray:
    """Return for each row whether its value is one of ``values``."""
    chunks = [pc.is_in(chunk.dictionary, values).take(chunk.indices) for chunk in map(_encoded, column.chunks)]
    return pa.chunked_array(chunks, pa.bool_())


def positions_in(column: pa.ChunkedArray, values: pa.Array) -> np.ndarray:
    """Return for each row the position of its value among ``values``, -1 where it is none of them: int64."""
    positions = [np.zeros(0, dtype=np.int64)]
    for chunk in map(_encoded, column.chunks):
        of_value = pc.fill_null(pc.index_in(chunk.dictionary, values), -1).to_numpy().astype(np.int64)
        positions.append(np.append(of_value, -1)[pc.fill_null(chunk.indices, -1).to_numpy()])  # the last one: of null
    return positions[1] if len(positions) == 2 else np.concatenate(positions)


def same(column: pa.ChunkedArray, other: pa.ChunkedArray) -> bool:
    """Whether two columns hold the same values in the same order, however they are encoded."""
    if len(column) != len(other):
        return False
    if column.type == other.type and column.equals(other):
        return True
    return plain(column).equals(plain(other))


def plain(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return a column as one array of strings."""
    array = one_array(column) if isinstance(column, pa.ChunkedArray) else column
    return array.cast(pa.string()) if pa.types.is_dictionary(array.type) else array


def one_array(column: pa.ChunkedArray) -> pa.Array:
    """Return a column's chunks as one array."""
    if column.num_chunks == 1:
        return column.chunk(0)
    combined = column.combine_chunks()
    return pa.concat_arrays(combined.chunks) if isinstance(combined, pa.ChunkedArray) else combined


def _encoded(chunk: pa.Array) -> pa.DictionaryArray:
    return chunk if pa.types.is_dictionary(chunk.type) else chunk.dictionary_encode()


def rows_hash(rows: pa.Table, values: Callable[[pa.Table], Sequence[Any]], size: int = 16) -> str:
    """Return the hexadecimal hash of rows (``2 * size`` digits): :func:`content_hash` of their ``values``; of more than
    16,384 rows, of the hashes of pieces, so that few rows are Python objects at a time."""
    pieces = (rows.slice(first, _HASHED_ROWS) for first in range(0, len(rows) or 1, _HASHED_ROWS))
    hashes = [content_hash(*values(piece), size=size) for piece in pieces]
    return content_hash(hashes, size=size) if len(hashes) > 1 else hashes[0]

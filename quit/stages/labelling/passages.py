"""Passages: every ordered selection of a question's hints (paper, section 3.2.1).

Five hints give sum over k of C(5, k) * k! = 5 + 20 + 60 + 120 + 120 = 325 passages. Order is depth first over the trie
of permutations, so that a passage shares all hints except the last with its parent, which comes before it. A prefix
cache of an LLM server profits from that order. The tables ``passages``, ``answers`` and ``labels`` have it too.

The work is the same for every question, so it is done once for each number of hints and then repeated by Arrow: no
function here loops over passages in Python.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quit.common.columns import one_array
from quit.contracts.tables import table
from quit.errors import InputError, SettingsError

MAX_HINTS = 9  # one digit per hint in subset and permutation; nine make 986,409 passages per question
_ROWS_A_CHUNK = 500_000
_ROWS_A_RANGE = 80_000
_MAX_BYTES = 2**31 - 1  # of one Arrow string array


@dataclass(frozen=True)
class PermutationTable:
    """All permutations of ``n`` hints in depth-first order, as arrays of P = ``passage_count(n)`` rows.

    ``subset`` and ``permutation``: string arrays (``"024"``, ``"402"``). ``hints``: int16, number of hints. ``parent``:
    int32, row of the permutation without its last hint, -1 for a single hint. ``indices``: int8, all permutations one
    after the other; row i is ``indices[offsets[i]:offsets[i + 1]]`` (``offsets``: int32, P + 1 entries).
    """

    n: int
    subset: pa.StringArray
    permutation: pa.StringArray
    hints: np.ndarray
    parent: np.ndarray
    indices: np.ndarray
    offsets: np.ndarray

    def __len__(self) -> int:
        return len(self.hints)


def passage_count(n: int = 5) -> int:
    """Return how many passages ``n`` hints make. Raises ``SettingsError`` unless 1 <= n <= 9."""
    if not 1 <= n <= MAX_HINTS:
        raise SettingsError(f"The number of hints that make passages must be 1 to {MAX_HINTS}, not {n}.")
    return sum(math.perm(n, size) for size in range(1, n + 1))


@lru_cache(maxsize=MAX_HINTS)
def permutations(n: int = 5) -> tuple[tuple[int, ...], ...]:
    """Return every ordered selection of ``n`` hints, parents before children, siblings ascending.

    >>> permutations(2)
    ((0,), (0, 1), (1,), (1, 0))

    Raises ``SettingsError`` unless 1 <= n <= 9.
    """
    passage_count(n)
    # Depth first with ascending siblings is the lexicographic order of tuples: a prefix sorts before its extensions.
    return tuple(sorted(itertools.chain.from_iterable(itertools.permutations(range(n), k) for k in range(1, n + 1))))


def subset_of(permutation: str | Sequence[int]) -> str:
    """Return the chosen hints, ascending: ``"402"`` or ``(4, 0, 2)`` -> ``"024"``."""
    return "".join(sorted(map(str, permutation)))


@lru_cache(maxsize=MAX_HINTS)
def permutation_table(n: int = 5) -> PermutationTable:
    """Return the arrays of all permutations of ``n`` hints (made once). Raises ``SettingsError`` unless 1 <= n <= 9."""
    every = permutations(n)
    row = {permutation: position for position, permutation in enumerate(every)}
    hints = np.fromiter(map(len, every), dtype=np.int16, count=len(every))
    indices = np.fromiter(itertools.chain.from_iterable(every), dtype=np.int8, count=int(hints.sum(dtype=np.int64)))
    parent = np.fromiter((row.get(one[:-1], -1) for one in every), dtype=np.int32, count=len(every))
    arrays = PermutationTable(
        n=n,
        subset=pa.array([subset_of(one) for one in every], pa.string()),
        permutation=pa.array(["".join(map(str, one)) for one in every], pa.string()),
        hints=hints,
        parent=parent,
        indices=indices,
        offsets=np.concatenate([[0], np.cumsum(hints, dtype=np.int32)]).astype(np.int32),
    )
    for array in (arrays.hints, arrays.parent, arrays.indices, arrays.offsets):
        array.flags.writeable = False  # it is shared by all callers
    return arrays


def enumerate_passages(question_ids: Sequence[str] | pa.Array | pa.ChunkedArray, n: int = 5) -> pa.Table:
    """Return the table ``passages``: ``passage_count(n)`` rows per question, in the order of ``question_ids``.

    Columns question_id, subset, permutation (string), hints (int16). The chunks share their columns subset, permutation
    and hints, so that 2.4 million rows cost little more than their question ids.
    Raises ``SettingsError`` unless 1 <= n <= 9.
    """
    schema = table("passages").schema
    one = permutation_table(n)
    ids = _array(question_ids, pa.string())
    if not len(ids):
        return schema.empty_table()
    questions = max(1, min(len(ids), _ROWS_A_CHUNK // len(one)))
    tile = np.tile(np.arange(len(one), dtype=np.int32), questions)
    subset, permutation, hints = one.subset.take(tile), one.permutation.take(tile), pa.array(one.hints).take(tile)
    batches = []
    for start in range(0, len(ids), questions):
        some = ids.slice(start, questions)
        rows = len(some) * len(one)
        repeated = some.take(np.repeat(np.arange(len(some), dtype=np.int32), len(one)))
        columns = [repeated, subset.slice(0, rows), permutation.slice(0, rows), hints.slice(0, rows)]
        batches.append(pa.record_batch(columns, schema=schema))
    return pa.Table.from_batches(batches, schema)


Hints: TypeAlias = Sequence[Sequence[str]] | pa.ListArray | pa.ChunkedArray
"""One list of texts per question, in the order that the indices of permutations mean."""


def passage_hints(hints: Sequence[str], permutation: str) -> tuple[str, ...]:
    """Return the hints of one passage in reading order; joined by a space, they are its text."""
    return tuple(hints[int(index)] for index in permutation)


def passage_texts(hints: Hints, permutations: PermutationTable) -> pa.StringArray:
    """Return the text of every passage, question by question: its hints in reading order, joined by a space.

    The result has ``len(hints) * len(permutations)`` rows. One array holds at most 2 GiB, about 18,000 questions of
    usual hints: for more, and to stay in bounded memory, use ``iter_passage_texts``.
    Raises ``InputError`` when a question has fewer hints than the permutations choose from, or the text is too long.
    """
    lists = _array(hints, pa.list_(pa.string()))
    parts = list(iter_passage_texts(lists, permutations))
    if (size := sum(part.nbytes for part in parts)) > _MAX_BYTES:
        raise InputError(f"The passages of {len(lists):,} questions hold {size:,} bytes: pass fewer questions at once.")
    return pa.concat_arrays(parts) if parts else pa.array([], pa.string())


def iter_passage_texts(hints: Hints, permutations: PermutationTable) -> Iterator[pa.StringArray]:
    """Yield the texts of ``passage_texts``, some questions at a time: about ten million passages per second.

    Ranges are small (about 80,000 passages) because gather and join are ten times faster in memory that is used again
    than in memory the system must first hand out. Raises as ``passage_texts`` does.
    """
    lists = _array(hints, pa.list_(pa.string()))
    _check_hints(lists, permutations.n)
    indices, ends = permutations.indices.astype(np.int64), permutations.offsets[1:].astype(np.int64)
    step = max(1, _ROWS_A_RANGE // len(ends))
    for start in range(0, len(lists), step):
        yield _texts(lists.slice(start, step), indices, ends)


def _texts(lists: pa.ListArray, indices: np.ndarray, ends: np.ndarray) -> pa.StringArray:
    starts = lists.offsets.to_numpy()[:-1].astype(np.int64)
    gather = (starts[:, None] + indices[None, :]).ravel()
    width = pc.binary_length(lists.values).to_numpy()
    size = int(width[gather].sum(dtype=np.int64)) + len(gather)
    if size > _MAX_BYTES:
        raise InputError(f"The passages of {len(lists):,} questions hold {size:,} bytes, more than an array can.")
    all_ends = (np.arange(len(lists), dtype=np.int64)[:, None] * len(indices) + ends[None, :]).ravel()
    bounds = np.concatenate([[0], all_ends]).astype(np.int32)
    lists_of_hints = pa.ListArray.from_arrays(pa.array(bounds), lists.values.take(pa.array(gather)))
    return pc.binary_join(lists_of_hints, " ")


def _check_hints(lists: pa.ListArray, needed: int) -> None:
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    if (short := np.flatnonzero(lengths < needed)).size:
        first = int(short[0])
        raise InputError(f"The question at position {first} has {lengths[first]} hints; its passages need {needed}.")
    if lists.values.null_count:
        raise InputError("A hint is null: passages need texts.")


def _array(values: Sequence | pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    if isinstance(values, pa.ChunkedArray):
        values = one_array(values)
    return (values if isinstance(values, pa.Array) else pa.array(list(values), kind)).cast(kind)

"""Passages: ordered selections of a question's hints (paper, section 3.2.1).

QUIT takes all of them: five hints give sum over k of C(5, k) * k! = 5 + 20 + 60 + 120 + 120 = 325 passages. Order is
depth first over the trie of permutations, so that a passage comes after the one that lacks its last hint. A prefix
cache of an LLM server profits from that order. The tables ``passages``, ``answers`` and ``labels`` have it too.

A question may have any number of passages (:mod:`quit.stages.labelling.design`). What follows from a permutation alone
is worked out once per distinct permutation; no function here loops over passages in Python.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quit.common.columns import one_array, positions_in
from quit.common.ids import HINT_CHARACTERS
from quit.contracts.tables import table
from quit.errors import InputError, SettingsError
from quit.settings.construction import MAX_PASSAGES

_CODE_POINTS = np.frombuffer(HINT_CHARACTERS.encode("utf-32-le"), np.uint32)
_PLACES = np.full(int(_CODE_POINTS[-1]) + 1, -1, np.int16)
_PLACES[_CODE_POINTS] = np.arange(len(HINT_CHARACTERS))
_PLACE_OF = {character: place for place, character in enumerate(HINT_CHARACTERS)}
_ROWS_A_CHUNK = 500_000
_MAX_BYTES = 2**31 - 1  # of one Arrow string array
ROWS_A_RANGE = 80_000
"""Passages assembled at a time: see :func:`iter_passage_texts`."""


@dataclass(frozen=True, eq=False)
class PermutationTable:
    """Distinct permutations in depth-first order, as arrays of P rows.

    ``subset`` and ``permutation``: string arrays (``"024"``, ``"402"``). ``hints``: int16, number of hints.
    ``indices``: int16, the hints of all permutations one after the other; row i is
    ``indices[offsets[i]:offsets[i + 1]]`` (``offsets``: int32, P + 1 entries).
    """

    subset: pa.StringArray
    permutation: pa.StringArray
    hints: np.ndarray
    indices: np.ndarray
    offsets: np.ndarray

    @classmethod
    def of(cls, permutations: Iterable[str]) -> PermutationTable:
        """Return these permutations, sorted. Raises ``InputError`` for one that is none."""
        names = sorted(permutations)
        characters = "".join(names)
        for name in names:
            if not name or len({*name}) < len(name) or not _PLACE_OF.keys() >= {*name}:
                raise InputError(f"{name!r} is no permutation: expected a digit or letter (a to z) per hint.")
        offsets = np.concatenate([[0], np.cumsum([*map(len, names)])]).astype(np.int32)
        indices = _PLACES[np.frombuffer(characters.encode("utf-32-le"), np.uint32)]
        hints = np.diff(offsets).astype(np.int16)
        subset = pa.array(map(subset_of, names), pa.string())
        for array in (hints, indices, offsets):
            array.flags.writeable = False  # it is shared by all callers
        return cls(subset, pa.array(names, pa.string()), hints, indices, offsets)

    def __len__(self) -> int:
        return len(self.hints)

    @property
    def n(self) -> int:
        """How many hints a question needs for these permutations."""
        return int(self.indices.max(initial=-1)) + 1

    @cached_property
    def paths(self) -> tuple[tuple[int, ...], ...]:
        """The hints of each permutation in reading order."""
        return tuple(tuple(part.tolist()) for part in np.split(self.indices, self.offsets[1:-1]))

    @cached_property
    def full(self) -> bool:
        """Whether these are all ordered selections of ``n`` hints."""
        return len(self) == passage_count(self.n)


def passage_count(n: int = 5) -> int:
    """Return how many ordered selections ``n`` hints have."""
    return sum(math.perm(n, size) for size in range(1, n + 1))


def permutation_name(indices: Iterable[int]) -> str:
    """Return what tables call a permutation: ``(4, 0, 2)`` -> ``"402"``."""
    return "".join(HINT_CHARACTERS[index] for index in indices)


@lru_cache(maxsize=9)
def permutations(n: int = 5) -> tuple[tuple[int, ...], ...]:
    """Return every ordered selection of ``n`` hints, parents before children, siblings ascending.

    >>> permutations(2)
    ((0,), (0, 1), (1,), (1, 0))
    """
    # Depth first with ascending siblings is the lexicographic order of tuples: a prefix sorts before its extensions.
    return tuple(sorted(itertools.chain.from_iterable(itertools.permutations(range(n), k) for k in range(1, n + 1))))


def subset_of(permutation: str) -> str:
    """Return the chosen hints, ascending: ``"402"`` -> ``"024"``."""
    return "".join(sorted(permutation))


@lru_cache(maxsize=9)
def permutation_table(n: int = 5) -> PermutationTable:
    """Return all ordered selections of ``n`` hints (made once). Raises ``SettingsError`` for more than
    :data:`MAX_PASSAGES`, which nine hints have."""
    if n < 1 or passage_count(n) > MAX_PASSAGES:
        raise SettingsError(
            f"All ordered selections of {n} hints are {passage_count(n):,} passages; expected 1 to {MAX_PASSAGES:,}."
        )
    return PermutationTable.of(map(permutation_name, permutations(n)))


@dataclass(frozen=True, eq=False)
class PassageRows:
    """The passages of Q questions, question after question: N rows.

    ``codes``: int32, shape (N,), the row of ``table`` that a passage's permutation is; ``starts``: int64, shape
    (Q + 1,), where the passages of each question begin.
    """

    table: PermutationTable
    codes: np.ndarray
    starts: np.ndarray

    @classmethod
    def of(cls, pieces: Iterable[pa.Table], ids: pa.Array) -> PassageRows:
        """Return the passages of the questions ``ids``, in that order; those of others are left out. ``pieces``: tables
        with question_id and permutation, where a question's rows keep their order."""
        owners: list[np.ndarray] = [np.zeros(0, np.int64)]
        codes: list[np.ndarray] = [np.zeros(0, np.int32)]
        row_of: dict[str, int] = {}
        for piece in pieces:
            owner, column = positions_in(piece["question_id"], ids), piece["permutation"]
            for chunk in column.chunks:
                for name in (chunk.dictionary if pa.types.is_dictionary(chunk.type) else chunk.unique()).to_pylist():
                    row_of.setdefault(name, len(row_of))
            code = positions_in(column, pa.array(row_of, pa.string())).astype(np.int32)
            owners.append(owner[owner >= 0])
            codes.append(code[owner >= 0])
        owner, code = np.concatenate(owners), np.concatenate(codes)
        if (np.diff(owner) < 0).any():
            order = np.argsort(owner, kind="stable")
            owner, code = owner[order], code[order]
        present = np.unique(code)
        names = np.array([*row_of], dtype=object)[present]
        rank = np.zeros(len(row_of), np.int32)
        rank[present[np.argsort(names)]] = np.arange(len(present))
        starts = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(ids)))]).astype(np.int64)
        return cls(PermutationTable.of(names.tolist()), rank[code], starts)

    @classmethod
    def full(cls, questions: int, n: int) -> PassageRows:
        """Return all ordered selections of ``n`` hints for each question. Raises as :func:`permutation_table`."""
        orders = permutation_table(n)
        codes = np.tile(np.arange(len(orders), dtype=np.int32), questions)
        return cls(orders, codes, np.arange(questions + 1) * len(orders))

    def __len__(self) -> int:
        return len(self.codes)

    @cached_property
    def counts(self) -> np.ndarray:
        """Passages of each question: int64, shape (Q,)."""
        return np.diff(self.starts)

    @cached_property
    def owner(self) -> np.ndarray:
        """The question of each passage: int64, shape (N,)."""
        return np.repeat(np.arange(len(self.counts)), self.counts)

    @cached_property
    def hints(self) -> np.ndarray:
        """The number of hints of each passage: int16, shape (N,)."""
        return self.table.hints[self.codes]

    @cached_property
    def permutation(self) -> pa.StringArray:
        """The permutation of each passage."""
        return self.table.permutation.take(pa.array(self.codes))

    def check_hints(self, ids: Sequence[str], hints: pa.ListArray) -> None:
        """Raise ``InputError`` where a question has no passage, or passages of more hints than it has."""
        if len(missing := np.flatnonzero(self.counts == 0)):
            raise InputError(f"The table 'passages' has no row for the question {ids[missing[0]]!r}.")
        largest = np.array([max(path, default=0) for path in self.table.paths])
        needed = 1 + np.maximum.reduceat(largest[self.codes], self.starts[:-1])
        counts = pc.list_value_length(hints).to_numpy()
        if len(short := np.flatnonzero(counts < needed)):
            place = int(short[0])
            raise InputError(
                f"The question {ids[place]!r} has {counts[place]} selected hints in the table 'ranked_hints'; its "
                f"passages need {needed[place]}."
            )

    @cached_property
    def unordered(self) -> np.ndarray:
        """Questions whose passages are not in depth-first order, each once: int64."""
        steps = np.diff(self.codes) <= 0
        return np.unique(self.owner[1:][steps & (np.diff(self.owner) == 0)])

    @property
    def is_full(self) -> bool:
        """Whether each question has all ordered selections of as many hints."""
        return self.table.full and len(self) == len(self.counts) * len(self.table)

    def rows(self, positions: np.ndarray) -> np.ndarray:
        """Return the places of all passages of some questions: int64, question after question."""
        return ranges(self.starts[positions], self.counts[positions])

    def places(self, table: pa.Table, ids: pa.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the place among these passages of each row of a table (question_id, permutation), its question and its
        permutation's row: int64, -1 where there is none. ``ids``: of the questions."""
        question = positions_in(table["question_id"], ids)
        code = positions_in(table["permutation"], self.table.permutation)
        if not len(self):
            return np.full(len(table), -1), question, code
        keys = question * (len(self.table) + 1) + code
        places = np.minimum(np.searchsorted(self._keys, keys), len(self) - 1)
        exists = (self._keys[places] == keys) & (question >= 0) & (code >= 0)
        return np.where(exists, places, -1), question, code

    @cached_property
    def _keys(self) -> np.ndarray:
        return self.owner * (len(self.table) + 1) + self.codes

    def take(self, positions: np.ndarray) -> PassageRows:
        """Return the passages of some questions."""
        starts = np.concatenate([[0], np.cumsum(self.counts[positions])])
        return PassageRows(self.table, self.codes[self.rows(positions)], starts)

    def split(self, rows: int = ROWS_A_RANGE) -> Iterator[slice]:
        """Yield ranges of questions that have at most so many passages, or one question."""
        first = 0
        while first < len(self.counts):
            end = int(np.searchsorted(self.starts, self.starts[first] + rows, side="right")) - 1
            end = max(end, first + 1)
            yield slice(first, end)
            first = end

    def by_question(self, values: np.ndarray) -> list[np.ndarray]:
        """Return ``values``, one per passage, of each question."""
        return [values[start:end] for start, end in itertools.pairwise(self.starts)]

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Return the sum of ``values``, shape (..., N), over each question's passages: shape (..., Q)."""
        return np.add.reduceat(values, self.starts[:-1], axis=-1, dtype=np.int64)


def ranges(starts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return ``range(start, start + size)`` of each pair, one after the other."""
    return np.repeat(starts - (np.cumsum(sizes) - sizes), sizes) + np.arange(sizes.sum())


def enumerate_passages(question_ids: Sequence[str] | pa.Array | pa.ChunkedArray, orders: PermutationTable) -> pa.Table:
    """Return the table ``passages`` of questions that all have these passages, in the order of ``question_ids``.

    Columns question_id, subset, permutation (string), hints (int16). The chunks share their columns subset, permutation
    and hints, so that 2.4 million rows cost little more than their question ids.
    """
    schema = table("passages").schema
    ids = _array(question_ids, pa.string())
    if not len(ids):
        return schema.empty_table()
    questions = max(1, min(len(ids), _ROWS_A_CHUNK // len(orders)))
    tile = np.tile(np.arange(len(orders), dtype=np.int32), questions)
    columns = [column.take(tile) for column in (orders.subset, orders.permutation, pa.array(orders.hints))]
    batches = []
    for start in range(0, len(ids), questions):
        block = ids.slice(start, questions)
        rows = len(block) * len(orders)
        repeated = block.take(np.repeat(np.arange(len(block), dtype=np.int32), len(orders)))
        arrays = [repeated, *(column.slice(0, rows) for column in columns)]
        batches.append(pa.record_batch(arrays, schema=schema))
    return pa.Table.from_batches(batches, schema)


Hints: TypeAlias = Sequence[Sequence[str]] | pa.ListArray | pa.ChunkedArray
"""One list of texts per question, in the order that the indices of permutations mean."""


def passage_hints(hints: Sequence[str], permutation: str) -> tuple[str, ...]:
    """Return the hints of one passage in reading order; joined by a space, they are its text."""
    return tuple(hints[_PLACE_OF[character]] for character in permutation)


def passage_texts(hints: Hints, passages: PassageRows) -> pa.StringArray:
    """Return the text of every passage: its hints in reading order, joined by a space. ``hints``: of each question.

    One array holds at most 2 GiB, about 18,000 questions of usual hints: for more, and to stay in bounded memory, use
    ``iter_passage_texts``.
    Raises ``InputError`` when a question has fewer hints than its passages choose from, or the text is too long.
    """
    parts = list(iter_passage_texts(hints, passages))
    if (size := sum(part.nbytes for part in parts)) > _MAX_BYTES:
        raise InputError(
            f"The passages of {len(passages.counts):,} questions hold {size:,} bytes: pass fewer questions at once."
        )
    return pa.concat_arrays(parts) if parts else pa.array([], pa.string())


def iter_passage_texts(hints: Hints, passages: PassageRows) -> Iterator[pa.StringArray]:
    """Yield the texts of ``passage_texts``, some questions at a time: about ten million passages per second.

    Ranges are small (about 80,000 passages) because gather and join are ten times faster in memory that is used again
    than in memory the system must first hand out. Raises as ``passage_texts`` does.
    """
    lists = _array(hints, pa.list_(pa.string()))
    for block in passages.split():
        rows = slice(*passages.starts[[block.start, block.stop]])
        yield joined_hints(lists, passages.table, passages.owner[rows], passages.codes[rows])


def joined_hints(hints: pa.ListArray, orders: PermutationTable, owner: np.ndarray, codes: np.ndarray) -> pa.StringArray:
    """Return the texts of passages: ``codes``, their rows of the table; ``owner``: those of ``hints``, int64.

    Raises as :func:`passage_texts` does.
    """
    if hints.values.null_count:
        raise InputError("A hint is null: passages need texts.")
    sizes = orders.hints[codes].astype(np.int64)
    indices, of_passage = orders.indices[ranges(orders.offsets[codes].astype(np.int64), sizes)], np.repeat(owner, sizes)
    counts = pc.fill_null(pc.list_value_length(hints), 0).to_numpy()
    if len(short := np.flatnonzero(indices >= counts[of_passage])):
        first = int(of_passage[short[0]])
        raise InputError(
            f"The question at position {first} has {counts[first]} hints; a passage of it needs more of them."
        )
    gather = hints.offsets.to_numpy()[of_passage] + indices
    size = int(pc.binary_length(hints.values).to_numpy()[gather].sum(dtype=np.int64)) + len(gather)
    if size > _MAX_BYTES:
        questions = len(np.unique(owner))
        raise InputError(f"The passages of {questions:,} questions hold {size:,} bytes, more than an array can.")
    bounds = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    return pc.binary_join(pa.ListArray.from_arrays(pa.array(bounds), hints.values.take(pa.array(gather))), " ")


def _array(values: Sequence | pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    if isinstance(values, pa.ChunkedArray):
        values = one_array(values)
    return (values if isinstance(values, pa.Array) else pa.array(list(values), kind)).cast(kind)

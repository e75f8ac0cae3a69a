"""Neighbourhood aware retrieval: Algorithm 1 of SUNAR (the SUNAR paper, section 3.1).

Three readings of the printed algorithm were needed. Its line 18 never alternates as it stands ("R if C = F, N if
C = N"); the pools take turns here, as in the algorithm it comes from (GAR, MacAvaney et al. 2022). Its loop ends when
R+ holds c documents; here also when R and N are empty, which a small corpus brings about. Line 15 does not say which
score of B a neighbour inherits: lines 9 and 10 leave B rescored, so by default the rescored one. GAR's program bounds
N, the printed algorithm does not: ``bounded``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from quit.qa.sunar.trace import Uncertainty
from quit.retrieval.protocols import NeighbourGraph, Ranking

Score = Callable[[Sequence[int]], np.ndarray]
"""Rows to their relevance to the sub-question, float64, shape (rows,); any real numbers."""


@dataclass(frozen=True, slots=True, eq=False)
class Rescored:
    """A batch after feedback: new scores, float64, shape (rows,), and the part of the trace about it."""

    scores: np.ndarray
    trace: Uncertainty = field(default_factory=Uncertainty)


Rescore = Callable[[Sequence[int], np.ndarray], Rescored]
"""A batch's rows in descending score, and those scores, to their new scores (line 9)."""


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """One pass of the loop. ``pool``: ``R`` or ``N``; ``rows`` in descending ``scores``; ``rescored`` and ``parents``
    beside them.

    ``parents``: the scored document that gave each its priority, None in a batch of R.
    """

    pool: str
    rows: tuple[int, ...]
    scores: np.ndarray
    rescored: np.ndarray
    parents: tuple[int | None, ...]
    trace: Uncertainty


@dataclass(frozen=True, slots=True)
class Scored:
    """A document of R+. ``iteration``: the batch that scored it, from 0."""

    row: int
    score: float
    rescored: float
    iteration: int
    pool: str


@dataclass(frozen=True, slots=True)
class Pool:
    """R+, batch by batch."""

    batches: tuple[Batch, ...]

    def __len__(self) -> int:
        return sum(len(batch.rows) for batch in self.batches)

    def ranked(self, ids: Callable[[Sequence[int]], list[str]]) -> list[Scored]:
        """Return R+ by rescored value, ties by the earlier batch, then by document id."""
        scored = [
            Scored(row, float(score), float(rescored), number, batch.pool)
            for number, batch in enumerate(self.batches)
            for row, score, rescored in zip(batch.rows, batch.scores, batch.rescored, strict=True)
        ]
        names = ids([document.row for document in scored])
        order = sorted(range(len(scored)), key=lambda at: (-scored[at].rescored, scored[at].iteration, names[at]))
        return [scored[at] for at in order]


def nar(
    R: Ranking,
    G: NeighbourGraph | None,
    score: Score,
    rescore: Rescore | None = None,
    *,
    b: int,
    c: int,
    neighbours: int = 10,
    raw_priority: bool = False,
    bounded: bool = False,
) -> Pool:
    """Return R+, the documents that were scored.

    ``R``: initial ranking. ``G``: document graph; None never looks past R, which is plain re-ranking at the same
    budget. ``score``: the cross-encoder (line 5). ``rescore``: the feedback of lines 6 to 9; None leaves scores as they
    are. ``b``: batch size, at least 1. ``c``: budget of documents to score; below 1 nothing is scored. ``neighbours``:
    how many a document adds to N. ``raw_priority``: whether neighbours enter N with the cross-encoder's score of their
    source document, in place of its rescored one. ``bounded``: whether a document brings in no neighbours when N could
    fill the rest of the budget and the document's score is below the lowest that brought any in (pyterrier_adaptive's
    ``GAR``). An empty R gives an empty pool. Raises ``ValueError`` for b < 1.
    """
    if b < 1:
        raise ValueError(f"b must be at least 1, got {b}")
    first: dict[int, float] = {}  # R: row -> first-stage score, best first
    for row, value in zip(R.rows.tolist(), R.scores.tolist(), strict=True):
        first.setdefault(row, value)
    around: dict[int, float] = {}  # N: row -> priority, in the order of arrival
    parent: dict[int, int] = {}
    lowest = math.inf  # the lowest score that brought a document into N
    scored: set[int] = set()  # R+
    batches: list[Batch] = []
    pools = (("R", first),) if G is None else (("R", first), ("N", around))
    turn = 0
    while len(scored) < c and (first or around):
        name, pool = pools[turn % len(pools)]
        turn += 1
        if not pool:
            continue
        B = _top(pool, min(b, c - len(scored)))
        values = np.asarray(score(B), dtype=np.float64)
        order = np.argsort(-values, kind="stable")
        B, values = [B[at] for at in order], values[order]
        parents = tuple(parent.get(row) if name == "N" else None for row in B)
        rescored = Rescored(values) if rescore is None else rescore(B, values)
        after = np.asarray(rescored.scores, dtype=np.float64)
        batches.append(Batch(name, tuple(B), values, after, parents, rescored.trace))
        scored.update(B)
        for row in B:
            first.pop(row, None)
            around.pop(row, None)
        if G is not None:
            for row, value in zip(B, (values if raw_priority else after).tolist()):
                if bounded and len(around) >= c - len(scored) and value < lowest:
                    continue
                for near in G.neighbours(row, neighbours).tolist():
                    if near not in scored and (near not in around or value > around[near]):
                        around[near], parent[near] = value, row
                        lowest = min(lowest, value)
    return Pool(tuple(batches))


def _top(pool: dict[int, float], count: int) -> list[int]:
    """Return the rows with the highest values; ties go to the one that came first."""
    return sorted(pool, key=pool.__getitem__, reverse=True)[:count]

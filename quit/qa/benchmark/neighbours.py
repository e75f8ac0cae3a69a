"""Neighbourhood aware retrieval over a release's subsets of hints (algorithm 1 of the SUNAR paper; ours on QUIT).

All subsets of a question share its hints, so they are each other's nearest and lead nowhere: an edge joins subsets of
two questions. A subset is scored once, as its first passage, and stands for all its permutations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
from scipy import sparse

from quit.common.arrays import stored_array
from quit.common.ids import content_hash
from quit.errors import InputError
from quit.qa.benchmark.late import LateReranker
from quit.qa.benchmark.plugins import PluginContext, make_retriever
from quit.qa.benchmark.task import Passages, Units, expand
from quit.qa.indexes.encoders import EmbeddedEncoder
from quit.qa.indexes.exact import ExactSearch, Exclusions
from quit.qa.indexes.vectors import check_finite
from quit.qa.settings import FirstStages
from quit.qa.sunar.nar import nar
from quit.retrieval.protocols import Ranking

VERSION = 1


class Selected:
    """Some passages of every group: those of ``hints`` parts (0: of any number), in each order or in the first alone.

    ``rows``: those among all passages, unit by unit. ``starts``: each group's first row here and, last, how many there
    are. Implements :class:`quit.qa.benchmark.task.Passages`.
    """

    def __init__(self, passages: Passages, hints: int = 0, *, first_order: bool = False) -> None:
        units = passages.units
        of_size = np.flatnonzero((units.sizes == hints) | (hints == 0))
        rows = units.rows[of_size]
        ends = np.arange(len(of_size) + 1) if first_order else rows.indptr
        self._passages, self.groups = passages, passages.groups
        self.rows = units.firsts[of_size] if first_order else rows.indices
        ones = np.ones(len(self.rows), dtype=np.int8), np.arange(len(self.rows)), ends
        own = sparse.csr_array(ones, shape=(len(of_size), len(self.rows)))
        self.units = Units(units.group[of_size], units.parts[of_size], own)
        self.starts = ends[np.searchsorted(self.units.group, np.arange(self.groups + 1))]
        self.identity = f"{passages.identity}/{content_hash(hints, first_order)}"

    def __len__(self) -> int:
        return len(self.rows)

    def ids(self, rows: Sequence[int]) -> list[str]:
        """Return the passages' ids."""
        return self._passages.ids(self.rows[rows].tolist())

    def texts(self, rows: Sequence[int]) -> list[str]:
        """Return the passages."""
        return self._passages.texts(self.rows[rows].tolist())

    def parts(self, group: int) -> tuple[str, ...]:
        """Return all parts of a group."""
        return self._passages.parts(group)

    def sentences(self, rows: Sequence[int]) -> list[tuple[str, ...]]:
        """Return the sentences of each passage in reading order."""
        return self._passages.sentences(self.rows[rows].tolist())


@dataclass(frozen=True)
class _Edges:
    """A graph in memory. ``edges``: int64, shape (documents, k), -1 where there are fewer."""

    identity: str
    edges: np.ndarray

    def __len__(self) -> int:
        return len(self.edges)

    def neighbours(self, row: int, k: int) -> np.ndarray:
        nearest = self.edges[row, :k]
        return nearest[nearest >= 0]


class NarRetriever:
    """``nar:FIRST`` or ``nar:FIRST,NEIGHBOURS``: NAR from what another retriever finds among the subsets.

    The graph has MiniLM's nearest subsets of other questions, ``NEIGHBOURS`` a subset (``sunar.neighbours``); with 0
    FIRST alone is scored, as many subsets. Late interaction of MiniLM scores; the budget is ``sunar.c`` subsets in
    batches of ``sunar.b``, R is ``sunar.first``. Raises ``InputError`` where no retriever is named.
    """

    def __init__(self, context: PluginContext) -> None:
        settings = context.settings.sunar
        name, _, count = context.argument.rpartition(",")
        if not count.strip().isdecimal():
            name, count = context.argument, str(settings.neighbours)
        if not name:
            raise InputError("Name the retriever that NAR begins with: nar:FIRST, or nar:FIRST,NEIGHBOURS.")
        self._passages, self._settings, self._neighbours = context.passages, settings, int(count)
        self._subsets = Selected(context.passages, first_order=True)
        inner = replace(context, passages=self._subsets, argument="")
        self._first, self._scorer = make_retriever(name, inner), LateReranker(inner)
        self._encoder = EmbeddedEncoder(FirstStages(device="cpu"))
        graph = f"{self._encoder.identity}/neighbours={self._neighbours}"
        self._edges_file = context.cache / f"edges-{content_hash(VERSION, graph, self._subsets.identity)}.npy"
        budget = f"b={settings.b},c={settings.c},first={settings.first}"
        self.identity = f"nar/{VERSION}/{self._first.identity}/{self._scorer.identity}/{graph}/{budget}"

    def search(self, queries: Sequence[str], depth: int) -> list[Ranking]:
        """Return at most ``depth`` passages of the scored subsets per query."""
        rankings = self._first.search(queries, self._settings.first)
        return [self._walk(query, ranking, depth) for query, ranking in zip(queries, rankings, strict=True)]

    def _walk(self, query: str, ranking: Ranking, depth: int) -> Ranking:
        def score(rows: Sequence[int]) -> np.ndarray:
            return self._scorer.score(query, self._subsets.texts(rows))

        graph = self._graph if self._neighbours else None
        pool = nar(ranking, graph, score, b=self._settings.b, c=self._settings.c, neighbours=self._neighbours)
        units = np.array([row for batch in pool.batches for row in batch.rows], dtype=np.int64)
        scores = np.array([value for batch in pool.batches for value in batch.scores])
        return expand(self._passages, units, scores, depth)

    @cached_property
    def _graph(self) -> _Edges:
        return _Edges(self._edges_file.stem, stored_array(self._edges_file, self._nearest))

    def _nearest(self) -> np.ndarray:
        texts = self._subsets.texts(range(len(self._subsets)))
        vectors = self._encoder.documents(texts)
        check_finite(vectors, self._encoder.name, lambda row: texts[row])
        exclusions = Exclusions([range(*ends) for ends in pairwise(self._subsets.starts.tolist())], len(texts))
        return ExactSearch(vectors, self._neighbours, precision="fp32", excluded=exclusions).rows(0, len(texts))[0]

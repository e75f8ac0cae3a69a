"""Neighbourhood aware retrieval over a release's subsets of hints (algorithm 1 of the SUNAR paper; ours on QUIT).

All subsets of a question share its hints, so they are each other's nearest and lead nowhere: an edge joins subsets of
two questions. A subset is scored once, in rank order, and stands for all its permutations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from quit.common.arrays import stored_array
from quit.common.ids import content_hash
from quit.errors import InputError
from quit.qa.benchmark.late import LateReranker
from quit.qa.benchmark.plugins import PluginContext, make_retriever
from quit.qa.benchmark.task import Passages, expand
from quit.qa.indexes.encoders import EmbeddedEncoder
from quit.qa.indexes.exact import ExactSearch, Exclusions
from quit.qa.indexes.vectors import check_finite
from quit.qa.settings import FirstStages
from quit.qa.sunar.nar import nar
from quit.retrieval.protocols import Ranking

VERSION = 1


class Selected:
    """Some passages of every group: those of ``hints`` parts (0: of any number), in each order or in the first alone.

    ``places``: where they stand among a group's passages, int64. Implements
    :class:`quit.qa.benchmark.task.Passages`.
    """

    def __init__(self, passages: Passages, hints: int = 0, *, first_order: bool = False) -> None:
        pairs = zip(passages.subsets, passages.members, strict=True)
        selection = [
            (subset, places[:1] if first_order else places) for subset, places in pairs if hints in (0, len(subset))
        ]
        self._passages, self.groups = passages, passages.groups
        self.subsets = tuple(subset for subset, _ in selection)
        self.places = np.concatenate([places for _, places in selection])
        self.size = len(self.places)
        self.members = tuple(np.split(np.arange(self.size), np.cumsum([len(places) for _, places in selection])[:-1]))
        self.identity = f"{passages.identity}/{content_hash(self.places.tolist())}"

    def __len__(self) -> int:
        return self.groups * self.size

    def ids(self, rows: Sequence[int]) -> list[str]:
        """Return the passages' ids."""
        return self._passages.ids(self._rows(rows))

    def texts(self, rows: Sequence[int]) -> list[str]:
        """Return the passages."""
        return self._passages.texts(self._rows(rows))

    def parts(self, group: int) -> tuple[str, ...]:
        """Return all parts of a group."""
        return self._passages.parts(group)

    def sentences(self, rows: Sequence[int]) -> list[tuple[str, ...]]:
        """Return the sentences of each passage in reading order."""
        return self._passages.sentences(self._rows(rows))

    def _rows(self, rows: Sequence[int]) -> list[int]:
        groups, places = np.divmod(np.asarray(rows, dtype=np.int64), self.size)
        return (groups * self._passages.size + self.places[places]).tolist()


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
        groups = np.arange(len(texts)).reshape(-1, self._subsets.size)
        exclusions = Exclusions(groups.tolist(), len(texts))
        return ExactSearch(vectors, self._neighbours, precision="fp32", excluded=exclusions).rows(0, len(texts))[0]

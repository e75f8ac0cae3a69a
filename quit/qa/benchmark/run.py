"""The rankings of the systems under test: retrieved, then reranked (paper, section 4).

A step's rows, also those of :mod:`quit.qa.benchmark.reading` and :mod:`quit.qa.benchmark.relabel`, are kept by
:class:`quit.qa.benchmark.stages.CheckpointedTables`: another reader reads the same rankings, another metric asks no
model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from quit.common.progress import advance
from quit.common.rows import grouped, tuples
from quit.dataset.dataset import Dataset
from quit.errors import InputError
from quit.models.protocols import Reader
from quit.models.user_classes import user_code
from quit.qa.benchmark import plugins
from quit.qa.benchmark.listwise import ListwiseReranker
from quit.qa.benchmark.passages import Passages, ReleasePassages, TitledPassages
from quit.qa.benchmark.plugins import ORACLE, PluginContext
from quit.qa.benchmark.stages import CheckpointedTables
from quit.qa.benchmark.task import ReleaseTask, Relevance, Task
from quit.qa.contracts.benchmark import RANKINGS
from quit.qa.settings import Benchmark
from quit.retrieval.protocols import Ranking, Scorer
from quit.text.words import counted

VERSION = 1
ORACLE_IDENTITY = "oracle/1"
Plugin = TypeVar("Plugin")


@dataclass
class System:
    """A retriever with or without a reranker over one task, and what it ranked: one ranking per question.

    ``fingerprint``: of all that its rankings depend on.
    """

    task: Task
    retriever: str
    reranker: str
    identity: str
    fingerprint: str
    rankings: list[Ranking] = field(repr=False, default_factory=list)

    @property
    def name(self) -> str:
        """``retriever`` or ``retriever + reranker``."""
        return f"{self.retriever} + {self.reranker}" if self.reranker else self.retriever


@dataclass
class Runner:
    """Carries out the steps for one release, and holds what they share.

    ``context``: what plugins are made from; each task's plugins get its passages. ``replies``: the ``counts`` of
    listwise rerankers, by system.
    """

    context: PluginContext
    stages: CheckpointedTables
    dataset: Dataset
    replies: dict[str, Counter[str]] = field(default_factory=dict)
    _plugins: dict[tuple[Any, ...], Any] = field(default_factory=dict, repr=False)

    @property
    def settings(self) -> Benchmark:
        """The section ``benchmark``."""
        return self.context.settings.benchmark

    def _plugin(self, make: Callable[[str, PluginContext], Plugin], name: str, passages: Passages) -> Plugin:
        """Return a plugin of a task, made once: its model serves every system."""
        key = (make, name, passages.identity)
        if key not in self._plugins:
            self._plugins[key] = make(name, replace(self.context, passages=passages))
        return self._plugins[key]

    def reader(self, name: str) -> Reader:
        """Return a reader of the profile or a plugin, made once. Raises as :func:`plugins.make_reader`."""
        return self._plugin(plugins.make_reader, name, self.context.passages)

    def _passages(self, task: Task, name: str) -> Passages:
        """Return a task's passages as a retriever or reranker reads them."""
        titled = name in self.settings.id_titles and isinstance(task.passages, ReleasePassages)
        return self._titled if titled else task.passages

    @cached_property
    def _titled(self) -> Passages:
        return TitledPassages(self.dataset)

    def oracle(self, task: ReleaseTask) -> System:
        """Return every relevant passage of every question."""
        rankings = [task.relevance.oracle(query) for query in range(len(task.queries))]
        return System(task, ORACLE, "", ORACLE_IDENTITY, f"{ORACLE_IDENTITY}/{task.passages.identity}", rankings)

    def oracle_rerank(self, system: System, relevance: Relevance) -> System:
        """Return a system's rankings after their first ``rerank_depth`` passages were ordered by label."""
        depth = self._rerank_depth(system)
        rankings = [
            reorder(ranking, relevance.labels(query, ranking.rows[:depth]).astype(np.float64))
            for query, ranking in enumerate(system.rankings)
        ]
        fingerprint = f"{system.fingerprint}+{ORACLE_IDENTITY}/{depth}"
        return System(system.task, system.retriever, ORACLE, ORACLE_IDENTITY, fingerprint, rankings)

    def _rerank_depth(self, system: System) -> int:
        """Return how many passages of each question are scored: all that the oracle returned."""
        depth = max((len(ranking) for ranking in system.rankings), default=0)
        return depth if system.retriever == ORACLE else min(depth, self.settings.rerank_depth)

    def retrieve(self, task: Task, name: str) -> System:
        """Return what a retriever finds for every question."""
        depth = self.settings.depth
        texts = [query.question for query in task.queries]
        passages = self._passages(task, name)
        retriever = self._plugin(plugins.make_retriever, name, passages)
        key = {
            "version": VERSION,
            "retriever": retriever.identity,
            "passages": passages.identity,
            "depth": depth,
            "questions": texts,
        }

        def rank_places(places: range) -> list[Ranking]:
            with user_code(f"The retriever {name!r} raised"):
                returned = retriever.search([texts[position] for position in places], depth)
                rankings = [Ranking(np.asarray(one.rows), np.asarray(one.scores, np.float64)) for one in returned]
            if len(rankings) != len(places):
                queries = counted(len(places), "query", "queries")
                raise InputError(f"The retriever {name!r} returned {len(rankings)} rankings to {queries}.")
            return [plugins.valid_ranking(name, ranking, len(task.passages), depth) for ranking in rankings]

        fingerprint, rankings = self._rankings("retrieve", f"{task.name}: {name}", key, task, rank_places)
        return System(task, name, "", retriever.identity, fingerprint, rankings)

    def rerank(self, system: System, name: str) -> System:
        """Return a system's rankings after a reranker scored their first ``rerank_depth`` passages; the rest stay
        behind these."""
        task, depth = system.task, self._rerank_depth(system)
        passages = task.passages if system.retriever == ORACLE else self._passages(task, name)
        reranker = self._plugin(plugins.make_reranker, name, passages)
        key = {"version": VERSION, "reranker": reranker.identity, "of": system.fingerprint, "depth": depth}
        if passages is not task.passages:
            key["passages"] = passages.identity

        def rerank_places(places: range) -> list[Ranking]:
            return [self._rerank(name, reranker, passages, system, query, depth) for query in places]

        label = f"{task.name}: {system.retriever} + {name}"
        counter = reranker.counts if isinstance(reranker, ListwiseReranker) else None
        fingerprint, rankings = self._rankings("rerank", label, key, task, rerank_places, counter)
        if counter is not None:
            self.replies[label] = self.stages.counts[f"rerank {label}"]
        return System(task, system.retriever, name, reranker.identity, fingerprint, rankings)

    def _rankings(
        self,
        stage: str,
        label: str,
        key: dict[str, Any],
        task: Task,
        rank: Callable[[range], list[Ranking]],
        counter: Counter[str] | None = None,
    ) -> tuple[str, list[Ranking]]:
        """Return the fingerprint of a step and the ranking of each question, from disk where they are."""

        def rows(places: range) -> list[dict[str, Any]]:
            return ranking_rows([task.question_ids[query] for query in places], rank(places))

        fingerprint, table = self.stages.table(stage, label, key, task.question_ids, RANKINGS, rows, counter)
        return fingerprint, rankings_of(table, task.question_ids)

    def _rerank(
        self, name: str, reranker: Scorer, passages: Passages, system: System, query: int, depth: int
    ) -> Ranking:
        task, ranking = system.task, system.rankings[query]
        if rows := ranking.rows[:depth].tolist():
            texts = passages.texts(rows)
            with user_code(f"The reranker {name!r} raised"):
                scores = np.asarray([*reranker.score(task.queries[query].question, texts)])
            ranking = reorder(ranking, plugins.valid_scores(name, scores, len(texts)))
        advance(f"{system.retriever} + {name}: questions", total=len(task.queries))
        return ranking


def reorder(ranking: Ranking, scores: np.ndarray) -> Ranking:
    """Return a ranking with its first ``len(scores)`` passages sorted by score, stably, the rest behind them."""
    head = len(scores)
    order = np.argsort(-scores, kind="stable")
    rows = np.concatenate([ranking.rows[:head][order], ranking.rows[head:]])
    lowest = float(scores.min()) if head else 0.0
    rest = lowest - 1.0 - np.arange(len(ranking.rows) - head)
    return Ranking(rows, np.concatenate([scores[order], rest]))


def ranking_rows(questions: Sequence[str], rankings: Sequence[Ranking]) -> list[dict[str, Any]]:
    """Return rows of the table ``rankings``."""
    return [
        {"question_id": question, "rank": rank, "row": row, "score": score}
        for question, ranking in zip(questions, rankings, strict=True)
        for rank, (row, score) in enumerate(
            zip(ranking.rows.tolist(), np.asarray(ranking.scores).tolist(), strict=True), 1
        )
    ]


def rankings_of(table: pa.Table, questions: Sequence[str]) -> list[Ranking]:
    """Return the ranking of each question, empty where the table has no row of it."""
    pairs = grouped((question, (row, score)) for question, row, score in tuples(table, "question_id", "row", "score"))
    columns = [np.array(pairs.get(question, ()), dtype=np.float64).reshape(-1, 2).T for question in questions]
    return [Ranking(rows.astype(np.int64), scores) for rows, scores in columns]

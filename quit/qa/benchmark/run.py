"""The benchmark from a release to its tables: retrieve, rerank, relabel, read, evaluate (paper, sections 4 and 5).

Every step goes through :class:`quit.qa.benchmark.stages.CheckpointedTables`, so a second run does only what is
new: another reader reads the same rankings, another metric asks no model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from quit.common.progress import advance, note
from quit.common.rows import tuples
from quit.dataset.dataset import Dataset
from quit.errors import InputError
from quit.models.protocols import NO_ANSWER, Prompt, Reader
from quit.models.user_classes import user_code
from quit.qa.benchmark import plugins, relabel
from quit.qa.benchmark.contexts import Sentences, context_of
from quit.qa.benchmark.listwise import ListwiseReranker
from quit.qa.benchmark.passages import Passages, ReleasePassages, TitledPassages
from quit.qa.benchmark.plugins import ORACLE, PluginContext
from quit.qa.benchmark.stages import CheckpointedTables
from quit.qa.benchmark.task import BenchmarkQuery, ReleaseTask, Relevance, Task
from quit.qa.contracts.benchmark import ANSWERS, RANKINGS, RELABELLED
from quit.qa.settings import Benchmark
from quit.retrieval.protocols import Ranking, Scorer
from quit.text.words import counted

VERSION = 1
ORACLE_IDENTITY = "oracle/1"
Plugin = TypeVar("Plugin")


class ContextKind(NamedTuple):
    """See :func:`quit.qa.benchmark.contexts.context_of`; ``limit``: sentences at most."""

    strategy: str
    k: int
    alpha: float
    beta: float
    limit: int


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


@dataclass(frozen=True)
class ReaderAnswers:
    """The answers of one reader to one kind of context of one system: one per question."""

    system: System
    reader: str
    strategy: str
    k: int
    answers: list[str]


@dataclass
class Runner:
    """Carries out the steps for one release.

    ``context``: what plugins are made from; each task's plugins get its passages. ``replies``: the ``counts`` of
    listwise rerankers, by system.
    """

    context: PluginContext
    stages: CheckpointedTables
    dataset: Dataset
    release_verdicts: dict[tuple[str, str], bool]
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
                rankings = retriever.search([texts[position] for position in places], depth)
            if len(rankings or ()) != len(places):
                queries = counted(len(places), "query", "queries")
                raise InputError(f"The retriever {name!r} returned {len(rankings or ())} rankings to {queries}.")
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
                scores = reranker.score(task.queries[query].question, texts)
            ranking = reorder(ranking, plugins.valid_scores(name, scores, len(texts)))
        advance(f"{system.retriever} + {name}: questions", total=len(task.queries))
        return ranking

    def relabel(self, task: Task, systems: Sequence[System]) -> Relevance:
        """Return the labels of all retrieved passages, by the profile's labelers and judge (section 5.1)."""
        rows = [
            np.unique(np.concatenate([system.rankings[query].rows for system in systems]))
            for query in range(len(task.queries))
        ]
        names = [labeler.name for labeler in self.context.settings.labelers]
        labelers = [self.context.models.reader(name, self.context.collection) for name in names]
        passages = counted(sum(map(len, rows)), "passage")
        note(f"relabel {task.name}: {passages} for each of {counted(len(labelers), 'labeler')}")
        judge = self.context.models.judge
        labels_of: dict[str, dict[int, int]] = {question_id: {} for question_id in task.question_ids}
        key = {
            "version": relabel.VERSION,
            "passages": task.passages.identity,
            "questions": [[query.question, query.coarse, query.fine] for query in task.queries],
            "rows": [retrieved.tolist() for retrieved in rows],
            "labelers": [labeler.identity for labeler in labelers],
            "judge": judge.identity,
            "gold": [query.gold for query in task.queries],
            "known": sorted(
                [*pair, correct] for pair, correct in self.release_verdicts.items() if pair[0] in labels_of
            ),
        }

        def make(places: range) -> list[dict[str, Any]]:
            queries = [task.queries[query_number] for query_number in places]
            labels = relabel.relabel(
                queries,
                [rows[query_number] for query_number in places],
                task.passages,
                labelers,
                judge,
                self.release_verdicts,
            )
            return [
                {"question_id": query.question_id, "row": row, "label": label}
                for query, labels_of_query in zip(queries, labels, strict=True)
                for row, label in labels_of_query.items()
            ]

        _, table = self.stages.table("relabel", task.name, key, task.question_ids, RELABELLED, make)
        for row in table.to_pylist():
            labels_of[row["question_id"]][row["row"]] = row["label"]
        return relabel.RetrievedLabels([labels_of[question_id] for question_id in task.question_ids])

    def read(self, system: System, name: str) -> list[ReaderAnswers]:
        """Return a reader's answers to the contexts of a system: every strategy at every k.

        A question without any passage gets NO ANSWER without being asked: without context it would be the parametric
        probe.
        """
        settings = self.settings
        numbers = (settings.alpha, settings.beta, settings.freq_sentences)
        kinds = [ContextKind(strategy, k, *numbers) for k in settings.k for strategy in settings.strategies]
        answers = zip(kinds, self.read_contexts(system, name, kinds), strict=True)
        return [ReaderAnswers(system, name, kind.strategy, kind.k, replies) for kind, replies in answers]

    def read_contexts(self, system: System, name: str, kinds: Sequence[ContextKind]) -> list[list[str]]:
        """Return a reader's answers to some kinds of context of a system: of each kind one per question."""
        task = system.task
        reader = self._plugin(plugins.make_reader, name, self.context.passages)
        deepest = max(kind.k for kind in kinds)
        sentences = [task.passages.sentences(ranking.rows[:deepest].tolist()) for ranking in system.rankings]
        contexts = [
            [context_of(kind.strategy, of_question[: kind.k], kind.alpha, kind.beta, kind.limit) for kind in kinds]
            for of_question in sentences
        ]
        answers_of = self._answers(f"{task.name}: {system.name}: {name}", reader, task.queries, contexts)
        return [
            [answers_of[query].get(contexts_of[number], NO_ANSWER) for query, contexts_of in enumerate(contexts)]
            for number in range(len(kinds))
        ]

    def every_passage(self, task: ReleaseTask, name: str) -> list[dict[int, str]]:
        """Return a reader's answers to each of a question's own passages, by row: what Optimal is made of (section
        5.4).

        The release's own answers, where this reader gave all of them; else the reader is asked.
        """
        rows = [task.relevance.rows(number) for number in range(len(task.queries))]
        reader = self._plugin(plugins.make_reader, name, self.context.passages)
        identities = {info.name: info.identity for info in self.dataset.ordered_readers}
        if identities.get(name) == reader.identity and self.dataset.answers[name].asked is None:
            number = list(identities).index(name)
            answers = (
                block.values[code]
                for block in self.dataset.blocks(task.relevance.groups)
                for code in block.codes[:, number].tolist()
            )
            return [{row: next(answers) for row in of_question} for of_question in rows]
        contexts = [task.passages.sentences(of_question) for of_question in rows]
        label = f"{task.name}: every passage: {name}"
        answers_of = self._answers(label, reader, task.queries, contexts, task.passages.identity)
        return [
            {row: by_context[context] for row, context in zip(of_question, contexts_of, strict=True)}
            for of_question, by_context, contexts_of in zip(rows, answers_of, contexts, strict=True)
        ]

    def _answers(
        self,
        label: str,
        reader: Reader,
        queries: Sequence[BenchmarkQuery],
        contexts: Sequence[Sequence[Sentences]],
        source: str | None = None,
    ) -> list[dict[Sentences, str]]:
        """Return context -> answer for each question; a context that occurs twice is read once, an empty one not at
        all.

        ``source``: identity of what the contexts follow from, where they are too many to be hashed.
        """
        distinct = [[context for context in dict.fromkeys(contexts_of) if context] for contexts_of in contexts]
        key = {
            "reader": reader.identity,
            "questions": [[query.question, query.coarse, query.fine] for query in queries],
            "contexts": source or distinct,
        }

        def make(places: range) -> list[dict[str, Any]]:
            owners = [(queries[number], context) for number in places for context in distinct[number]]
            prompts = [
                Prompt(query.question_id, query.question, context, query.coarse, query.fine)
                for query, context in owners
            ]
            with user_code(f"A reader ({label}) raised"):
                replies = reader.answer(prompts) if prompts else []
            if len(replies) != len(prompts):
                raise InputError(
                    f"A reader ({label}) returned {counted(len(replies), 'reply', 'replies')} to "
                    f"{counted(len(prompts), 'prompt')}."
                )
            return [
                {"question_id": query.question_id, "context": " ".join(context), "answer": reply.answer}
                for (query, context), reply in zip(owners, replies, strict=True)
            ]

        names = [query.question_id for query in queries]
        _, table = self.stages.table("read", label, key, names, ANSWERS, make)
        answers = iter(table["answer"].to_pylist())  # rows are in the order of questions and their contexts
        return [{context: next(answers) for context in contexts_of} for contexts_of in distinct]


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
    rows: dict[str, tuple[list[int], list[float]]] = {question: ([], []) for question in questions}
    for question, row, score in tuples(table, "question_id", "row", "score"):
        rows[question][0].append(row)
        rows[question][1].append(score)
    return [
        Ranking(np.array(rows_of_question, dtype=np.int64), np.array(scores))
        for rows_of_question, scores in rows.values()
    ]

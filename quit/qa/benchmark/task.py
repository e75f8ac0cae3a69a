"""A benchmark's task: questions, passages, and the relevance of passages to questions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from quit.dataset.dataset import Dataset
from quit.errors import InputError
from quit.evaluate.labels import SPLITS
from quit.qa.benchmark.passages import Passages, ReleasePassages
from quit.retrieval.protocols import Ranking


@dataclass(frozen=True, slots=True)
class BenchmarkQuery:
    """A question. ``answers``: the valid ones, for EM; ``gold``: for the judge, those of the source that people did not
    reject, or all valid ones where none is left."""

    question_id: str
    question: str
    answers: tuple[str, ...]
    gold: tuple[str, ...]
    coarse: str | None = None
    fine: str | None = None


class Relevance(Protocol):
    """Labels of passages for a task's questions, by place of the question."""

    def labels(self, query: int, rows: np.ndarray) -> np.ndarray:
        """Return the label of each passage, int8; one without a judgement has 0."""

    def judgements(self, query: int) -> np.ndarray | None:
        """Return the labels (int8) of all judged passages, highest first; None where only retrieved passages are
        judged."""


@dataclass(frozen=True, eq=False)
class ReleaseRelevance:
    """A release's own labels. ``groups``: the questions' groups, int64 (Q,). ``starts``: each group's first row and,
    last, the number of passages. ``label_of_row``: int8, the label of each passage for the question that it was made
    for; not read where that question is none of these."""

    groups: np.ndarray
    starts: np.ndarray
    label_of_row: np.ndarray

    def rows(self, query: int) -> range:
        """Return the rows of the passages that were made for a question."""
        group = self.groups[query]
        return range(*self.starts[group : group + 2].tolist())

    def row_labels(self, query: int) -> np.ndarray:
        """Return the label of each of :meth:`rows`, int8."""
        rows = self.rows(query)
        return self.label_of_row[rows.start : rows.stop]

    def labels(self, query: int, rows: np.ndarray) -> np.ndarray:
        """Return 0 for another question's passages, else the release's label."""
        own = self.rows(query)
        return np.where((own.start <= rows) & (rows < own.stop), self.label_of_row[rows], 0).astype(np.int8)

    def judgements(self, query: int) -> np.ndarray:
        """Return the labels of the passages that were made for the question, highest first."""
        return np.sort(self.row_labels(query))[::-1]

    def oracle(self, query: int) -> Ranking:
        """Return every relevant passage of a question in the order of its rows, all with one score: nothing but a
        reranker orders them (paper, section 5.3)."""
        rows = self.rows(query).start + np.flatnonzero(self.row_labels(query) > 0)
        return Ranking(rows, np.ones(len(rows), dtype=np.float32))


@dataclass(frozen=True)
class Task:
    """Questions over one corpus."""

    name: str
    passages: Passages
    queries: tuple[BenchmarkQuery, ...]

    @cached_property
    def question_ids(self) -> list[str]:
        return [query.question_id for query in self.queries]


@dataclass(frozen=True)
class LabelledTask(Task):
    """A task whose passages have labels: all of them, or those that some systems retrieved."""

    relevance: Relevance


@dataclass(frozen=True)
class ReleaseTask(LabelledTask):
    """A task over a release's own passages and labels."""

    passages: ReleasePassages
    relevance: ReleaseRelevance


def release_task(dataset: Dataset, split: str) -> ReleaseTask:
    """Return a split's questions over all passages of a release; ``split`` ``all`` takes every question.

    Raises ``InputError`` when the split has no question, saying how many the others have.
    """
    positions = np.arange(len(dataset.ids)) if split == "all" else dataset.positions(split)
    if not len(positions):
        counts = ", ".join(f"{name} {len(dataset.positions(name))}" for name in SPLITS)
        raise InputError(f"The split {split!r} of the release has no question ({counts}). Name another with --split.")
    types = dataset.aligned("descriptions").select(["coarse", "fine"]).take(positions).to_pylist()
    queries = tuple(
        BenchmarkQuery(
            dataset.ids[position],
            dataset.question_of[position],
            tuple(dataset.valid_answers_of[position]),
            tuple(dataset.gold_answers_of[position]),
            **of_question,
        )
        for position, of_question in zip(positions.tolist(), types, strict=True)
    )
    passages = ReleasePassages(dataset)
    labels = np.zeros(len(passages), dtype=np.int8)
    in_split = np.isin(np.arange(passages.groups), positions)
    labels[np.repeat(in_split, np.diff(passages.starts))] = dataset.grades_of(positions)
    relevance = ReleaseRelevance(positions.astype(np.int64), passages.starts, labels)
    return ReleaseTask("release", passages, queries, relevance)

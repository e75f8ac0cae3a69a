"""Labels for retrieved passages that have none: of a corpus without hints (paper, section 5.1). The labelers answer
from each passage, the judge compares.

Label 2 if at least one labeler is right, else 0: label 1 says that a hint was made for the
question, which no such passage was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from quit.common.progress import note
from quit.common.rows import tuples
from quit.dataset.dataset import FULLY
from quit.models.judges import rule
from quit.models.protocols import Judge, JudgeItem, Prompt, Reader
from quit.qa.benchmark.passages import Passages
from quit.qa.benchmark.run import Runner, System
from quit.qa.benchmark.task import BenchmarkQuery, Task
from quit.qa.contracts.benchmark import RELABELLED
from quit.stages.labelling.answers import fully_relevant
from quit.text.answers import answer_key
from quit.text.words import counted

VERSION = 2


@dataclass(frozen=True)
class RetrievedLabels:
    """Labels of the passages that some systems retrieved: for each question row -> label."""

    labels_of: Sequence[Mapping[int, int]]

    def labels(self, query: int, rows: np.ndarray) -> np.ndarray:
        """Return the labels, int8, 0 for a passage without a judgement."""
        return np.array([self.labels_of[query].get(int(row), 0) for row in rows], dtype=np.int8)

    def judgements(self, query: int) -> None:
        """Return None: what was not retrieved is not judged."""


def known_verdicts(verdicts: pa.Table) -> dict[tuple[str, str], bool]:
    """Return (question, answer's key) -> verdict of a release, people's included."""
    rows = tuples(verdicts, "question_id", "answer_key", "correct")
    return {(question, key): correct for question, key, correct in rows if correct is not None}


def label_retrieved(runner: Runner, task: Task, systems: Sequence[System]) -> RetrievedLabels:
    """Return the labels of all passages that some systems retrieved, by the profile's labelers and judge.

    A label that is on disk is not made again. Raises as :meth:`CheckpointedTables.table`.
    """
    rows = [
        np.unique(np.concatenate([system.rankings[query].rows for system in systems]))
        for query in range(len(task.queries))
    ]
    context, verdicts = runner.context, known_verdicts(runner.dataset.verdicts)
    labelers = [context.models.reader(labeler.name, context.collection) for labeler in context.settings.labelers]
    judge = context.models.judge
    passages = counted(sum(map(len, rows)), "passage")
    note(f"relabel {task.name}: {passages} for each of {counted(len(labelers), 'labeler')}")
    labels_of: dict[str, dict[int, int]] = {question_id: {} for question_id in task.question_ids}
    key = {
        "version": VERSION,
        "passages": task.passages.identity,
        "questions": [[query.question, query.coarse, query.fine] for query in task.queries],
        "rows": [retrieved.tolist() for retrieved in rows],
        "labelers": [labeler.identity for labeler in labelers],
        "judge": judge.identity,
        "gold": [query.gold for query in task.queries],
        "known": sorted([*pair, correct] for pair, correct in verdicts.items() if pair[0] in labels_of),
    }

    def make(places: range) -> list[dict[str, Any]]:
        part = slice(places.start, places.stop)
        labels = relabel(task.queries[part], rows[part], task.passages, labelers, judge, verdicts)
        return [
            {"question_id": query.question_id, "row": row, "label": label}
            for query, labels_of_query in zip(task.queries[part], labels, strict=True)
            for row, label in labels_of_query.items()
        ]

    _, table = runner.stages.table("relabel", task.name, key, task.question_ids, RELABELLED, make)
    for question_id, row, label in tuples(table, "question_id", "row", "label"):
        labels_of[question_id][row] = label
    return RetrievedLabels([*labels_of.values()])


def relabel(
    queries: Sequence[BenchmarkQuery],
    rows: Sequence[np.ndarray],
    passages: Passages,
    labelers: Sequence[Reader],
    judge: Judge,
    verdicts: Mapping[tuple[str, str], bool],
) -> list[dict[int, int]]:
    """Return row -> label (2 or 0) for each question's ``rows``.

    Each distinct (question, answer's key) is judged once, in its most frequent form, with the question's gold
    answers; a verdict that the release has (``verdicts``) stands. A verdict that could not be read is no yes.
    """
    prompts, owners = [], []
    for query_number, (query, rows_of_query) in enumerate(zip(queries, rows, strict=True)):
        for row, sentences in zip(rows_of_query.tolist(), passages.sentences(rows_of_query.tolist()), strict=True):
            prompts.append(Prompt(query.question_id, query.question, sentences, query.coarse, query.fine))
            owners.append((query_number, row))
    replies = [[reply.answer for reply in labeler.answer(prompts)] for labeler in labelers] if prompts else []
    forms: dict[tuple[int, str], Counter[str]] = {}
    for answers in replies:
        for (query_number, _), answer in zip(owners, answers, strict=True):
            forms.setdefault((query_number, answer_key(answer)), Counter())[answer] += 1
    right = _verdicts(queries, forms, judge, verdicts)
    labels: list[dict[int, int]] = [{} for _ in queries]
    for number, (query_number, row) in enumerate(owners):
        hits = np.array([right[query_number, answer_key(answers[number])] for answers in replies])
        labels[query_number][row] = FULLY if fully_relevant(hits) else 0
    return labels


def _verdicts(
    queries: Sequence[BenchmarkQuery],
    forms: Mapping[tuple[int, str], Counter[str]],
    judge: Judge,
    release_verdicts: Mapping[tuple[str, str], bool],
) -> dict[tuple[int, str], bool]:
    verdicts, pairs, items = {}, [], []
    for (query_number, key), counts in sorted(forms.items()):
        query = queries[query_number]
        if (query.question_id, key) in release_verdicts:
            verdicts[query_number, key] = release_verdicts[query.question_id, key]
        else:
            form, _ = min(counts.items(), key=lambda item: (-item[1], item[0]))
            pairs.append((query_number, key))
            items.append(JudgeItem(query.question_id, query.question, query.gold, form))
    for pair, ruling in zip(pairs, rule(items, judge), strict=True):
        verdicts[pair] = ruling.verdict.correct is True
    return verdicts

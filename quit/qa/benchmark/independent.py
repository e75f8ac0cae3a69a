"""Labels of a release that do not rest on some labelers: for models under test that made labels, or are like one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from quit.dataset.dataset import FULLY, PARTIALLY, Dataset, Replies
from quit.evaluate.circularity import CORPUS
from quit.qa.benchmark.task import ReleaseTask
from quit.stages.labelling.answers import fully_relevant
from quit.text.answers import answer_key


def task_without(task: ReleaseTask, dataset: Dataset, names: Sequence[str]) -> ReleaseTask:
    """Return a release's task with labels and valid answers that do not rest on some labelers: without the answers that
    only these gave, except gold ones."""
    positions = task.relevance.groups
    left_out = dataset.replies(positions, [info for info in dataset.labelers if info.name in names])
    others = dataset.replies(positions, [info for info in dataset.labelers if info.name not in names])
    labels = task.relevance.label_of_row.copy()
    irrelevant = PARTIALLY if dataset.given is None else 0
    labels[dataset.rows.rows(positions)] = np.where(fully_relevant(others.valid[others.index.T]), FULLY, irrelevant)
    gone = _answers(left_out) - _answers(others)
    queries = []
    for place, query in enumerate(task.queries):
        gold = {*map(answer_key, query.gold)}
        answers = [one for one in query.answers if (key := answer_key(one)) in gold or (place, key) not in gone]
        queries.append(replace(query, answers=tuple(answers) or query.answers))
    name = CORPUS + ", ".join(names)
    relevance = replace(task.relevance, label_of_row=labels)
    return replace(task, name=name, queries=tuple(queries), relevance=relevance)


def _answers(replies: Replies) -> set[tuple[int, str]]:
    """Return the place of the question and the key of each answer."""
    return {*zip(replies.owner.tolist(), replies.distinct["answer_key"].to_pylist(), strict=True)}

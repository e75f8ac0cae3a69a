"""Labels of a release that do not rest on some labelers: for models under test that made labels, or are like one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from quit.dataset.dataset import FULLY, PARTIALLY, Dataset
from quit.evaluate.circularity import CORPUS
from quit.qa.benchmark.task import ReleaseTask
from quit.release.rules import Answered
from quit.text.answers import answer_key


def task_without(task: ReleaseTask, dataset: Dataset, answered: Answered, names: Sequence[str]) -> ReleaseTask:
    """Return a release's task with labels and valid answers that do not rest on some labelers: without the answers that
    only these gave, except gold ones. Raises as :meth:`quit.release.rules.Answered.rule`."""
    labels = np.where(answered.label_2(answered.rule(without=names))[0], FULLY, PARTIALLY).astype(np.int8)
    keys: dict[bool, set[tuple[int, str]]] = {}
    for is_left in (False, True):
        labelers = [info for info in dataset.labelers if (info.name not in names) == is_left]
        replies = dataset.replies(task.relevance.groups, labelers)
        keys[is_left] = {*zip(replies.owner.tolist(), replies.distinct["answer_key"].to_pylist(), strict=True)}
    gone = keys[False] - keys[True]
    queries = []
    for place, query in enumerate(task.queries):
        gold = {*map(answer_key, query.gold)}
        answers = [one for one in query.answers if (key := answer_key(one)) in gold or (place, key) not in gone]
        queries.append(replace(query, answers=tuple(answers) or query.answers))
    name = CORPUS + ", ".join(names)
    relevance = replace(task.relevance, label_of_row=labels)
    return replace(task, name=name, queries=tuple(queries), relevance=relevance)

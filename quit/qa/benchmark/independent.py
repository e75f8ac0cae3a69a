"""Labels of a release that do not rest on some labelers: for models under test that made labels, or are like one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from quit.dataset.dataset import FULLY, PARTIALLY, Dataset, Replies
from quit.evaluate.circularity import CORPUS, Circularity
from quit.qa.benchmark.run import Runner, System
from quit.qa.benchmark.task import ReleaseTask
from quit.stages.labelling.answers import fully_relevant
from quit.text.answers import answer_key
from quit.text.vendors import family


def circularity(names: Sequence[str], runner: Runner) -> Circularity:
    """Return which of the models under test (``NAME``, ``NAME:MODEL`` or ``NAME:MODEL,MODEL``) are labelers of the
    release, or of a labeler's family."""
    families = {info.name: family(info.identity) for info in runner.dataset.labelers}
    models = {reader.name: reader.model or reader.name for reader in runner.context.settings.readers}
    related: dict[str, list[str]] = {}
    for name in names:
        own = {family(models.get(part, part)) for part in re.split("[:,]", name)}
        if labelers := [labeler for labeler in families if labeler == name or families[labeler] in own]:
            related[name] = labelers
    return Circularity([*families], related)


def independent_tasks(
    dataset: Dataset, task: ReleaseTask, circular: Circularity, systems: Sequence[System], readers: Sequence[str]
) -> Iterator[ReleaseTask]:
    """Yield a task for each set of labelers without which no label rests on the models of some system; none where
    ``labels.partial`` left answers out."""
    models = ((system.retriever, system.reranker, reader) for system in systems for reader in ("", *readers))
    left_out = {*map(circular.left_out, models)} - {()}
    if left_out and not dataset.partly_asked:
        for names in sorted(left_out):
            yield task_without(task, dataset, names)


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

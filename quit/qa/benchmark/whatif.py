"""The order of a benchmark's systems under other labels, from its kept rankings (``quit release what-if``)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from quit.common.arithmetic import on_grid
from quit.common.safe import safe_id
from quit.dataset.dataset import FULLY, PARTIALLY, Dataset
from quit.dataset.release import Release
from quit.errors import InputError
from quit.evaluate.circularity import CORPUS
from quit.evaluate.metrics import Measure, mean
from quit.evaluate.significance import resampled_means, tau_b
from quit.export.card_facts import read_baselines
from quit.qa.benchmark.plugins import ORACLE
from quit.qa.benchmark.results import Scores
from quit.qa.benchmark.run import System
from quit.qa.benchmark.runfile import ranking_of
from quit.qa.benchmark.task import ReleasePassages, ReleaseRelevance, Task, release_task
from quit.qa.settings.benchmark import Benchmark
from quit.release.create import subject_of_release
from quit.release.whatif import Answered, Rule
from quit.render.table import Table
from quit.retrieval.trec import read_run
from quit.text.answers import answer_key


def task_under(task: Task, answered: Answered, rule: Rule) -> Task:
    """Return a release's task with the labels of a rule; ``answered``: all labels of the release."""
    relevance = task.relevance
    assert isinstance(relevance, ReleaseRelevance)
    own = np.where(answered.label_2(rule)[0], FULLY, PARTIALLY).astype(np.int8)
    return replace(task, relevance=replace(relevance, own=own))


def task_without(task: Task, dataset: Dataset, answered: Answered, names: Sequence[str]) -> Task:
    """Return a release's task with labels and valid answers that do not rest on some labelers: without the answers that
    only these gave, except gold ones. Raises as :meth:`quit.release.whatif.Answered.rule`."""
    other_labels = task_under(task, answered, answered.rule(without=names))
    assert isinstance(other_labels.relevance, ReleaseRelevance)
    keys: dict[bool, set[tuple[int, str]]] = {}
    for is_left in (False, True):
        labelers = [info for info in dataset.labelers if (info.name not in names) == is_left]
        replies = dataset.replies(other_labels.relevance.groups, labelers)
        keys[is_left] = {*zip(replies.owner.tolist(), replies.distinct["answer_key"].to_pylist(), strict=True)}
    gone = keys[False] - keys[True]
    queries = []
    for place, query in enumerate(task.queries):
        gold = {*map(answer_key, query.gold)}
        answers = [one for one in query.answers if (key := answer_key(one)) in gold or (place, key) not in gone]
        queries.append(replace(query, answers=tuple(answers) or query.answers))
    return replace(other_labels, name=CORPUS + ", ".join(names), queries=tuple(queries))


def orders(folder: Path, release: Release, answered: Answered, rule: Rule) -> list[dict[str, Any]]:
    """Return the order of a benchmark's systems, now and under a rule, by each metric that label 2 has an effect on.

    Keys: ``metric``; ``systems``, in their present order, each with ``system``, ``now`` and ``then`` (means under the
    benchmark's policy); ``tau``, Kendall's tau-b of the two orders, with its bootstrap interval over questions
    (``low``, ``high``; None: not defined, where all systems are equal); ``swaps``: neighbours that change places.
    ``answered``: the release's labels. Oracles, which know the labels, are left out. Raises ``InputError`` for a folder
    without a benchmark of this release, and where some labeler was not asked about every passage.
    """
    read_baselines(folder, release.content_id)
    tables = subject_of_release(release).labelled()
    if tables.partly_asked:
        raise InputError(f"An order of systems needs all answers, and labels.partial left some out: {tables.fill_in}")
    run_facts = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    settings = Benchmark(**run_facts["settings"])
    task = release_task(tables, run_facts["facts"]["questions"].rpartition(" ")[2])
    passages = task.passages
    assert isinstance(passages, ReleasePassages)
    both = [Scores(task), Scores(task_under(task, answered, rule))]
    metrics = [text for text in settings.metrics if "nDCG" in text or Measure.parse(text).least == FULLY]
    names = []
    for file, name in run_facts["runs"].items():
        corpus, _, system = name.partition(": ")
        retriever, _, reranker = system.partition(" + ")
        if corpus == task.name and ORACLE not in (retriever, reranker):
            names.append(system)
            path = folder / "runs" / file
            lines = read_run(path)[1] if path.stat().st_size else {}  # empty: it ranked nothing
            rankings = [ranking_of(lines.get(safe_id(each), {}), passages, each) for each in task.question_ids]
            for scores in both:
                scores.add_system(System(scores.task, retriever, reranker, "", "", rankings), metrics)
    if not (metrics and names):
        raise InputError(f"The benchmark in {folder} has no system, or no metric in which label 2 counts.")
    values = np.array(
        [[[of for (_, text), of in scores.values.items() if text == metric] for scores in both] for metric in metrics]
    )  # shape (metrics, now and then, systems, questions)
    columns = np.nan_to_num(values).reshape(-1, values.shape[-1]).T
    means = np.vstack([on_grid(columns).mean(axis=0), resampled_means(columns, settings.resamples, settings.seed)])
    rows = []
    for metric, of_metric, pairs in zip(metrics, values, np.hsplit(means, len(metrics)), strict=True):
        now, then = ([mean(of, settings.without_relevant) for of in each] for each in of_metric)
        systems = sorted(zip(names, now, then, strict=True), key=lambda row: -row[1])
        swaps = [[a[0], b[0]] for a, b in pairwise(systems) if a[1] > b[1] and a[2] < b[2]]
        taus = tau_b(*np.hsplit(pairs, 2))
        ends = [np.nan] * 2 if np.isnan(taus[0]) else np.nanquantile(taus[1:], [0.025, 0.975])
        tau, low, high = (None if np.isnan(each) else float(each) for each in (taus[0], *ends))
        system_rows = [dict(zip(("system", "now", "then"), row, strict=True)) for row in systems]
        rows.append({"metric": metric, "systems": system_rows, "tau": tau, "low": low, "high": high, "swaps": swaps})
    return rows


def order_pieces(rows: Sequence[dict[str, Any]]) -> list[Table]:
    """Return what :func:`orders` returns as tables."""
    taus = [
        (*(row[key] for key in ("metric", "tau", "low", "high")), "; ".join(map(" and ".join, row["swaps"])) or "none")
        for row in rows
    ]
    means = [
        (row["metric"], each["system"], f"{each['now']:.4f}", f"{each['then']:.4f}")
        for row in rows
        for each in row["systems"]
    ]
    return [
        Table("Order of systems", ("metric", "tau-b", "low", "high", "neighbours that swap"), taus, (4,)),
        Table("Systems", ("metric", "system", "now", "then"), means, (1,)),
    ]

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
from quit.dataset.dataset import FULLY, PARTIALLY
from quit.errors import InputError
from quit.evaluate.metrics import Measure, mean
from quit.evaluate.significance import resampled_means, tau_b
from quit.export.baselines import read_baselines
from quit.release.whatif import Answered, Rule
from quit.render.table import Table, number
from quit.retrieval.trec import read_run
from quit.settings.benchmark import Benchmark
from quit.systems.benchmark.plugins import ORACLE
from quit.systems.benchmark.results import Scores
from quit.systems.benchmark.run import System
from quit.systems.benchmark.runfile import ranking_of
from quit.systems.benchmark.task import ReleaseRelevance, release_task


def orders(folder: Path, answered: Answered, rule: Rule) -> list[dict[str, Any]]:
    """Return the order of a benchmark's systems, now and under a rule, by each metric that label 2 has an effect on.

    Keys: ``metric``; ``systems``, in their present order, each with ``system``, ``now`` and ``then`` (means under the
    benchmark's policy); ``tau``, Kendall's tau-b of the two orders, with its bootstrap interval over questions
    (``low``, ``high``; None: not defined, where all systems are equal); ``swaps``: neighbours that change places.
    Oracles, which know the labels, are left out. Raises ``InputError`` for a folder without a benchmark of this
    release, and where some labeler was not asked about every passage.
    """
    read_baselines(folder, answered.content_id)
    if answered.dataset.tables.partly_asked:
        raise InputError(
            "An order of systems needs the answer of every labeler to every passage, and labels.partial left some out: "
            f"{answered.dataset.tables.fill_in}"
        )
    described = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    settings = Benchmark(**described["settings"])
    task = release_task(answered.dataset, str(answered.content_id), described["facts"]["questions"].rpartition(" ")[2])
    assert isinstance(task.relevance, ReleaseRelevance)
    [(fully, _)] = answered.label_2([rule], task.relevance.groups)
    own = np.where(fully, FULLY, PARTIALLY).astype(np.int8)
    now, then = Scores(task), Scores(replace(task, relevance=replace(task.relevance, own=own)))
    metrics = [text for text in settings.metrics if "nDCG" in text or Measure.parse(text).least == FULLY]
    names = []
    for file, name in described["runs"].items():
        corpus, _, system = name.partition(": ")
        retriever, _, reranker = system.partition(" + ")
        if corpus == task.name and ORACLE not in (retriever, reranker):
            names.append(system)
            lines = read_run(folder / "runs" / file)[1]
            rankings = [ranking_of(lines.get(safe_id(each), {}), task.passages) for each in task.question_ids]
            for scores in (now, then):
                scores.add_system(System(scores.task, retriever, reranker, "", "", rankings), metrics)
    columns = {
        metric: [[values for (_, of), values in scores.values.items() if of == metric] for scores in (now, then)]
        for metric in metrics
    }
    every = np.nan_to_num(np.array([*columns.values()])).reshape(-1, len(task.queries)).T  # (metrics, 2, systems) of it
    means = np.vstack([on_grid(every).mean(axis=0), resampled_means(every, settings.resamples, settings.seed)])
    taus = {
        metric: tau_b(*np.moveaxis(pairs, 1, 0))
        for metric, pairs in zip(
            metrics, np.moveaxis(means.reshape(len(means), len(metrics), 2, -1), 1, 0), strict=True
        )
    }
    return [_order(metric, names, columns[metric], taus[metric], settings.without_relevant) for metric in metrics]


def _order(
    metric: str, names: Sequence[str], values: Sequence[Sequence[np.ndarray]], taus: np.ndarray, policy: str
) -> dict[str, Any]:
    """``taus``: that of the questions as they are, then of their resamples."""
    means = ([mean(of, policy) for of in each] for each in values)
    rows = [{"system": name, "now": now, "then": then} for name, now, then in zip(names, *means, strict=True)]
    rows.sort(key=lambda row: -row["now"])
    swaps = [
        [first["system"], second["system"]]
        for first, second in pairwise(rows)
        if first["now"] > second["now"] and first["then"] < second["then"]
    ]
    defined = taus[~np.isnan(taus)]
    low, high = np.quantile(defined, [0.025, 0.975]).tolist() if not np.isnan(taus[0]) else (None, None)
    tau = None if np.isnan(taus[0]) else float(taus[0])
    return {"metric": metric, "systems": rows, "tau": tau, "low": low, "high": high, "swaps": swaps}


def order_pieces(orders_of: Sequence[dict[str, Any]]) -> list[Table | str]:
    """Return what :func:`orders` returns as tables."""
    taus = [
        (row["metric"], number(row["tau"]), f"{number(row['low'])} to {number(row['high'])}",
         "; ".join(" and ".join(pair) for pair in row["swaps"]) or "none")
        for row in orders_of
    ]  # fmt: skip
    systems = [
        (row["metric"], each["system"], f"{each['now']:.4f}", f"{each['then']:.4f}")
        for row in orders_of
        for each in row["systems"]
    ]
    return [
        Table(
            "Order of systems, now and then", ("metric", "tau-b", "95% interval", "neighbours that swap"), taus, (3,)
        ),
        Table("Systems", ("metric", "system", "now", "then"), systems, (1,)),
    ]

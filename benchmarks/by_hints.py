"""Retrievers, NAR, a bandit and retrieval complexity by number of hints and difficulty (docs/research/systems.md).

    quit build -w workspace --source wikihint:test_first50.json && quit release create -w workspace --name v1
    python -m benchmarks.by_hints workspace/releases/v1

Each number of hints is a corpus: all passages of that many hints, of all questions. A passage is relevant if a labeler
of the release answers from it (label 2). The bandit's arms are the retrievers' first passages, since a release has no
sub-questions; it is told the label of each passage that it takes. One that several arms hold is judged once.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from quit.common.cache import cache_folder
from quit.dataset.dataset import FULLY, Dataset
from quit.evaluate.significance import intervals
from quit.models.factory import Models
from quit.qa.bandits.experiment import stream
from quit.qa.bandits.metrics import first_seen
from quit.qa.bandits.policies import policies
from quit.qa.bandits.posteriors import QuantileTable
from quit.qa.bandits.request import Request
from quit.qa.bandits.simulate import simulate
from quit.qa.benchmark.neighbours import Selected
from quit.qa.benchmark.plugins import PluginContext, collection_of, make_retriever
from quit.qa.benchmark.task import BenchmarkQuery, ReleaseRelevance, release_task
from quit.qa.settings import QaSettings, load
from quit.retrieval.protocols import Ranking
from quit.stages.questions.difficulty import RetrievalComplexity

NAR, CONTROL = "nar:bm25", "nar:bm25,0"
ARMS = ("bm25", "minilm", "late", NAR)
BANDITS = {"random-rank-aware": "any arm", "bernoulli": "bandit"}
BUDGET = 10
"""Passages that are judged."""
SETTINGS = ("benchmark.granularity=subset", "sunar.first=20", "sunar.c=20", "sunar.b=5")
"""SUNAR's budget of 100 would score all subsets of five hints of a hundred questions, whatever the graph."""


def spent(name: str, rankings: Sequence[Ranking], relevant: Sequence[np.ndarray], settings: QaSettings) -> list[float]:
    """Return the relevant ones among the first passages that each policy of ``BANDITS`` has judged, over the budget.

    A mean over runs. ``relevant``: of each ranking's passages, bool.
    """
    shape = (len(rankings), BUDGET)
    documents, scores, flags = np.full(shape, -1, dtype=np.int64), np.zeros(shape), np.zeros(shape, dtype=bool)
    for arm, (ranking, own) in enumerate(zip(rankings, relevant, strict=True)):
        length = len(ranking)
        documents[arm, :length], scores[arm, :length], flags[arm, :length] = ranking.rows, ranking.scores, own
    gold = np.unique(documents[flags])
    names, parents = tuple(map(str, range(len(rankings)))), np.full(len(rankings), -1)
    nuggets = np.ones((len(gold), 1), dtype=bool)
    request = Request(name, name, names, documents, scores, flags.astype(float), flags, parents, gold, nuggets)
    shares = []
    for policy in policies(settings.bandits, tuple(BANDITS)):
        table, rng = QuantileTable(), stream(settings.bandits.seed, name, policy.name)
        order = simulate(request, policy, settings.bandits, table, rng, runs=settings.bandits.runs)
        judged = first_seen(order, request.places, len(request.pool)).argsort(axis=1)[:, :BUDGET]
        shares.append(float(np.isin(request.pool, gold)[judged].sum(axis=1).mean() / BUDGET))
    return shares


def columns(
    context: PluginContext, queries: Sequence[BenchmarkQuery], relevance: ReleaseRelevance, hints: int
) -> dict[str, np.ndarray]:
    """Return each column's values, float64, shape (questions,), over the passages of ``hints`` hints (0: of any).

    ``reaches``: whether NAR scored any passage of the question itself.
    """
    passages, settings = Selected(context.passages, hints), context.settings
    labels = ReleaseRelevance(relevance.groups, passages.starts, relevance.own[passages.rows])
    inner = replace(context, passages=passages)
    asked = [query.question for query in queries]
    scored = {name: make_retriever(name, inner).search(asked, len(passages)) for name in (NAR, CONTROL)}
    rankings = {
        name: [Ranking(own.rows[:BUDGET], own.scores[:BUDGET]) for own in scored[name]]
        if name in scored
        else make_retriever(name, inner).search(asked, BUDGET)
        for name in (*ARMS, CONTROL)
    }
    relevant = {
        name: [labels.labels(number, ranking.rows) >= FULLY for number, ranking in enumerate(own)]
        for name, own in rankings.items()
    }
    fully = np.array([(labels.judgements(number)[1] >= FULLY).sum() for number in range(len(queries))])
    values = {"at most": np.minimum(fully, BUDGET) / BUDGET}
    values |= {name: np.array([flags.sum() / BUDGET for flags in own]) for name, own in relevant.items()}
    shares = [
        spent(
            query.question_id,
            [rankings[arm][number] for arm in ARMS],
            [relevant[arm][number] for arm in ARMS],
            settings,
        )
        for number, query in enumerate(queries)
    ]
    values |= dict(zip(BANDITS.values(), np.array(shares).T, strict=True))
    subsets = Selected(passages, first_order=True)
    complexity = RetrievalComplexity.over_hints(
        subsets.texts(range(len(subsets))), context.models.encoder, settings.difficulty
    ).of(asked, [query.gold for query in queries])
    values["max s_i"] = np.array([each.answerability for each in complexity])
    values["complex"] = (values["max s_i"] < settings.difficulty.answer_threshold).astype(np.float64)
    for name, ranked in scored.items():
        own = [labels.labels(number, ranking.rows).any() for number, ranking in enumerate(ranked)]
        values[f"{name} reaches"] = np.array(own, dtype=np.float64)
    values["reaches - control"] = values[f"{NAR} reaches"] - values[f"{CONTROL} reaches"]
    values["nar - control"] = values[NAR] - values[CONTROL]
    values["bandit - any arm"] = values["bandit"] - values["any arm"]
    best = max(ARMS, key=lambda arm: float(values[arm].mean()))
    values["bandit - best arm"] = values["bandit"] - values[best]
    return values


def row(name: str, values: dict[str, np.ndarray], chosen: np.ndarray, settings: QaSettings) -> str:
    """Return a row of the table: means of the chosen questions with bootstrap intervals over questions."""
    matrix = np.stack([column[chosen] for column in values.values()], axis=1)
    own = settings.benchmark
    bounds = intervals(matrix, own.resamples, own.seed)
    cells = [
        f"{mean:.2f} ({low:.2f}, {high:.2f})" for mean, (low, high) in zip(matrix.mean(axis=0), bounds, strict=True)
    ]
    return f"| {name} | {len(matrix)} | {' | '.join(cells)} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("release", type=Path)
    parser.add_argument("--set", action="append", default=[], help="KEY=VALUE over the profile `embedded`")
    given = parser.parse_args()
    settings = load("embedded", [*SETTINGS, *given.set]).settings
    dataset = Dataset.of_release(given.release)
    task = release_task(dataset, "all")
    assert isinstance(task.relevance, ReleaseRelevance)
    context = PluginContext(
        task.passages, settings, Models(settings), cache_folder("benchmark"), collection_of(dataset)
    )
    every = np.ones(len(task.queries), dtype=bool)
    bins = np.array(dataset.aligned("descriptions")["difficulty_bin"].to_pylist())
    for hints in (*range(1, task.passages.units.sizes.max() + 1), 0):
        values = columns(context, task.queries, task.relevance, hints)
        if hints == 1:
            print(f"| passages | questions | {' | '.join(values)} |\n|{'---|' * (len(values) + 2)}")
        print(row(f"{hints} hint{'s' * (hints > 1)}" if hints else "all", values, every, settings), flush=True)
    for name in ("easy", "medium", "hard"):
        if (bins == name).any():
            print(row(f"all, {name}", values, bins == name, settings))


if __name__ == "__main__":
    main()

"""The paper's figures 4 to 6 as a table, from a run's own rows. :mod:`quit.qa.benchmark.leaderboard` draws them.

Figure 4: each corpus by its best retriever (highest Hit@1 at label 2): Hit@k on the left; on the right Hit at the
greatest depth over the passages of label 2 that all retrievers found, added up. Figure 5: EM of each system and reader.
Figure 6: the passages from which a reader answers correctly, by number of hints: the first passage of a retriever
without reranker, the first of the oracle retriever with a reranker, and every passage of a question (Optimal).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from quit.common.arithmetic import sum_in_order
from quit.dataset.dataset import FULLY
from quit.evaluate.metrics import Measure, under
from quit.qa.benchmark.plugins import ORACLE
from quit.qa.benchmark.results import Key, Scores
from quit.qa.contracts.benchmark import FIGURES

RETRIEVER, RERANKED, OPTIMAL = "retriever without reranker", "oracle retriever with reranker", "Optimal"
"""Figure 6's settings."""


def figures(scores: Sequence[Scores], policy: str) -> pa.Table:
    """Return the table ``figures``. ``scores``: of the release, then of other corpora; ``policy``: for questions
    without a relevant passage.

    A figure whose rows were not run has none: figure 4 needs metrics ``Hit(rel=2)@k``, figure 5 and 6 readers, figure 6
    also k = 1 among ``benchmark.k``.
    """
    rows = [row for scored in scores for row in _figure_4(scored, policy)]
    return FIGURES.from_rows([*rows, *_figure_5(scores[0]), *_figure_6(scores[0])])


def _row(figure: str, key: Key, line: str, x: int | str, y: float, passages: int = 0) -> dict[str, Any]:
    return {"figure": figure, **key._asdict(), "line": line, "x": str(x), "y": y, "passages": passages}


def _figure_4(scores: Scores, policy: str) -> Iterable[dict[str, Any]]:
    hits = _hits(scores, policy)
    if not hits:
        return
    shallow, deep = min(map(min, hits.values())), max(map(max, hits.values()))
    best = max(hits, key=lambda key: hits[key][shallow])
    for depth, value in sorted(hits[best].items()):
        yield _row("4 left", best, scores.task.name, depth, value)
    relevant = _relevant_passages(scores, deep)
    yield _row("4 right", best, scores.task.name, relevant, hits[best][deep], relevant)


def _hits(scores: Scores, policy: str) -> dict[Key, dict[int, float]]:
    """Return of each retriever without reranker its mean Hit at label 2 by depth."""
    hits: dict[Key, dict[int, float]] = {}
    for (key, metric), values in scores.values.items():
        if key.retriever != ORACLE and not (key.reranker or key.reader):
            measure = Measure.parse(metric)
            if measure.name == "Hit" and measure.least == FULLY:
                hits.setdefault(key, {})[measure.depth] = float(np.mean(under(values, policy) if len(values) else [0]))
    return hits


def _relevant_passages(scores: Scores, depth: int) -> int:
    """Return how many passages of label 2 the retrievers found down to ``depth``, added up."""
    return sum(
        int((scores.task.relevance.labels(query, ranking.rows[:depth]) == FULLY).sum())
        for system in scores.systems
        if not system.reranker and system.retriever != ORACLE
        for query, ranking in enumerate(system.rankings)
    )


def _figure_5(scores: Scores) -> Iterable[dict[str, Any]]:
    """As in table 8 a system has one strategy and one k for all readers; here that with the highest mean EM (the paper
    does not say how it chose)."""
    systems: dict[tuple[str, str], dict[tuple[str, int], dict[Key, float]]] = {}
    for (key, metric), values in scores.values.items():
        if metric == "EM" and key.reader and not key.is_oracle:
            contexts = systems.setdefault((key.retriever, key.reranker), {})
            contexts.setdefault((key.strategy, key.k), {})[key] = float(values.mean()) if len(values) else 0.0
    for contexts in systems.values():
        best = max(contexts.values(), key=lambda by: sum_in_order(by.values()))
        for key, value in best.items():
            yield _row("5", key, key.reader, key.system, value)


def _figure_6(scores: Scores) -> Iterable[dict[str, Any]]:
    # One passage: one context, by any strategy.
    rows = {key._replace(strategy="", k=0): (key, counts) for key, counts in scores.right.items()}
    for key, counts in rows.values():
        if key.strategy == "any":
            line = OPTIMAL
        elif key.retriever == ORACLE and key.reranker not in ("", ORACLE):
            line = RERANKED
        elif key.retriever != ORACLE and not key.reranker:
            line = RETRIEVER
        else:
            continue
        total = int(counts.sum())
        for hints, count in enumerate(counts.tolist(), start=1):
            yield _row("6", key, line, hints, count / total if total else 0.0, count)

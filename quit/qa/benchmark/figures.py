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
from quit.qa.benchmark.results import Key, Scores, key_columns
from quit.qa.benchmark.run import System
from quit.qa.contracts.benchmark import FIGURES

RETRIEVER, RERANKED, OPTIMAL = "retriever without reranker", "oracle retriever with reranker", "Optimal"
"""Figure 6's settings."""


def figures(scores: Sequence[Scores], systems: Sequence[System], policy: str) -> pa.Table:
    """Return the table ``figures``. ``scores``: of the release, then of other corpora; ``policy``: for questions
    without a relevant passage.

    A figure whose rows were not run has none: figure 4 needs metrics ``Hit(rel=2)@k``, figure 5 and 6 readers, figure 6
    also k = 1 among ``benchmark.k``.
    """
    rows = [row for scored in scores for row in _corpus(scored, systems, policy)]
    return FIGURES.from_rows([*rows, *_pipelines(scores[0]), *_hints(scores[0])])


def _row(figure: str, key: Key, line: str, x: Any, y: float, passages: int = 0) -> dict[str, Any]:
    return {"figure": figure, **key_columns(key), "line": line, "x": str(x), "y": y, "passages": passages}


def _corpus(scores: Scores, systems: Sequence[System], policy: str) -> Iterable[dict[str, Any]]:
    hits: dict[Key, dict[int, float]] = {}
    for (key, metric), values in scores.values.items():
        _, retriever, reranker, reader, _, _ = key
        if retriever != ORACLE and not (reranker or reader):
            measure = Measure.parse(metric)
            if measure.name == "Hit" and measure.least == FULLY and not measure.by:
                hits.setdefault(key, {})[measure.depth] = float(np.mean(under(values, policy) if len(values) else [0]))
    if not hits:
        return
    shallow, deep = min(min(by) for by in hits.values()), max(max(by) for by in hits.values())
    best = max(hits, key=lambda key: hits[key][shallow])
    for depth, value in sorted(hits[best].items()):
        yield _row("4 left", best, scores.task.name, depth, value)
    relevance = scores.task.relevance
    assert relevance is not None
    relevant = sum(
        int((relevance.labels(query, ranking.rows[:deep]) == FULLY).sum())
        for system in systems
        if system.task is scores.task and not system.reranker and system.retriever != ORACLE
        for query, ranking in enumerate(system.rankings)
    )
    yield _row("4 right", best, scores.task.name, relevant, hits[best][deep], relevant)


def _pipelines(scores: Scores) -> Iterable[dict[str, Any]]:
    """Figure 5. As in table 8 a system has one strategy and one k for all readers; here that with the highest mean EM
    (the paper does not say how it chose)."""
    systems: dict[tuple[str, str], dict[tuple[str, int], dict[Key, float]]] = {}
    for (key, metric), values in scores.values.items():
        _, retriever, reranker, reader, strategy, k = key
        if metric == "EM" and reader and ORACLE not in (retriever, reranker):
            contexts = systems.setdefault((retriever, reranker), {})
            contexts.setdefault((strategy, k), {})[key] = float(values.mean()) if len(values) else 0.0
    for (retriever, reranker), contexts in systems.items():
        best = max(contexts.values(), key=lambda by: sum_in_order(by.values()))
        for key, value in best.items():
            yield _row("5", key, key[3], f"{retriever} + {reranker}" if reranker else retriever, value)


def _hints(scores: Scores) -> Iterable[dict[str, Any]]:
    rows = {key[:4]: (key, counts) for key, counts in scores.right.items()}  # one passage: one context, by any strategy
    for key, counts in rows.values():
        _, retriever, reranker, _, strategy, _ = key
        if strategy == "any":
            line = OPTIMAL
        elif retriever == ORACLE and reranker not in ("", ORACLE):
            line = RERANKED
        elif retriever != ORACLE and not reranker:
            line = RETRIEVER
        else:
            continue
        total = int(counts.sum())
        for hints, count in enumerate(counts.tolist(), start=1):
            yield _row("6", key, line, hints, count / total if total else 0.0, count)

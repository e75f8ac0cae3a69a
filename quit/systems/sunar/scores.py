"""Figures of a run: cover-EM of its answers, recall and nDCG of its evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from quit.evaluate.metrics import Measure, cover_em, mean, run_values
from quit.systems.sunar.planners import UNREAD
from quit.systems.sunar.queries import Query

MEASURES = ("nDCG@10", "Recall@1", "Recall@10", "Recall@100")


def scores(traces: Sequence[Mapping[str, Any]], queries: Sequence[Query], substring: bool = False) -> dict[str, Any]:
    """Return the figures of a run, means over its questions.

    ``traces`` and ``queries`` belong together, in order. ``cover_em``: over the questions with gold answers
    (``answered_for`` of them); ``substring``: as :func:`quit.evaluate.metrics.cover_em` has it. The measures of
    :data:`MEASURES` and ``pool_recall`` (the share of the relevant documents among all that was scored) are over the
    questions with a relevant document (``judged`` of them); the others have no value that could be right or wrong.
    Evidence has ``top`` documents of each of several sub-questions: Recall@100 then is not recall at 100. A figure over
    no question is None. ``replies``: what language models were asked, and what could not be read (:func:`replies`).
    """
    covers = [
        cover_em(trace["prediction"], query.answers, substring)
        for trace, query in zip(traces, queries, strict=True)
        if query.answers
    ]
    judged = [(trace, query) for trace, query in zip(traces, queries, strict=True) if query.relevant]
    pools = [len(set(trace["pool"]) & set(query.relevant or ())) / len(query.relevant or ()) for trace, query in judged]
    return {
        "questions": len(traces),
        "answered_for": len(covers),
        "cover_em": _mean(covers),
        "judged": len(judged),
        **_ranking(judged),
        "pool_recall": _mean(pools),
        "pool_size": _mean([len(trace["pool"]) for trace in traces]),
        "sub_questions": _mean([len(trace["steps"]) for trace in traces]),
        "replies": replies(traces),
    }


def replies(traces: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what language models were asked over all questions; empty where they were asked nothing.

    The counts of :data:`quit.systems.sunar.reading.COUNTS`, of which ``unread`` also has replies of the planner
    (``unread_plans``) and of the meta reasoner without an answer (``unread_mer``). ``ended``: why plans ended, by
    reason; ``prediction_from``: where the predictions come from.
    """
    counts: Counter[str] = Counter()
    for trace in traces:
        counts.update(trace["replies"])
    if not counts["calls"]:
        return {}
    plans = sum(trace["ended"]["reason"].endswith(UNREAD) for trace in traces)
    reasoned = sum(trace["mer"] is not None and trace["mer"]["answer"] is None for trace in traces)
    counts["unread"] += plans + reasoned
    return {
        **counts,
        "unread_plans": plans,
        "unread_mer": reasoned,
        "ended": dict(sorted(Counter(trace["ended"]["reason"] for trace in traces).items())),
        "prediction_from": dict(sorted(Counter(trace["prediction_from"] for trace in traces).items())),
    }


def _ranking(judged: Sequence[tuple[Mapping[str, Any], Query]]) -> dict[str, float | None]:
    qrels = {query.query_id: dict(query.relevant or {}) for _, query in judged}
    run = {query.query_id: trace["evidence"] for trace, query in judged}
    return {name: _mean(list(run_values(run, qrels, Measure.parse(name)).values())) for name in MEASURES}


def _mean(values: Sequence[float | None]) -> float | None:
    return round(mean(values, "skip"), 6) if values else None

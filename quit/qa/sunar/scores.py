"""The figures of a run from its traces: cover-EM of the answers, recall and nDCG of the evidence, replies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from quit.evaluate.metrics import Measure, cover_em, run_values
from quit.qa.sunar.planners import UNREAD
from quit.qa.sunar.trace import Trace

MEASURES = ("nDCG@10", "Recall@1", "Recall@10", "Recall@100")


def scores(traces: Sequence[Trace], substring: bool = False) -> dict[str, Any]:
    """Return the figures of a run, means over its questions; None over no question.

    ``cover_em``: over the questions with gold answers (``answered_for`` of them). :data:`MEASURES` and ``pool_recall``
    (the share of the relevant documents among all that was scored): over the questions with a relevant document
    (``judged`` of them). ``substring``: as :func:`values_of` has it. Evidence has ``top`` documents of each of several
    sub-questions: Recall@100 then is not recall at 100. ``replies``: of :func:`replies`.
    """
    covers, judged = values_of(traces, "cover_em", substring), [trace for trace in traces if trace["relevant"]]
    return {
        "questions": len(traces),
        "answered_for": len(covers),
        "cover_em": _mean(covers),
        "judged": len(judged),
        **{name: _mean(values_of(judged, name)) for name in MEASURES},
        "pool_recall": _mean([recall(trace, trace["pool"]) for trace in judged]),
        "pool_size": _mean([len(trace["pool"]) for trace in traces]),
        "sub_questions": _mean([len(trace["steps"]) for trace in traces]),
        "replies": replies(traces),
    }


def values_of(traces: Sequence[Trace], name: str, substring: bool = False) -> np.ndarray:
    """Return ``cover_em`` of the traces with gold answers, or a measure of the evidence of those with a relevant
    document, float64. ``substring``: cover-EM counts an answer within a word."""
    if name == "cover_em":
        with_answers = [trace for trace in traces if trace["answers"]]
        return np.array([cover_em(trace["prediction"], trace["answers"], substring) for trace in with_answers])
    judged = {trace["query_id"]: trace for trace in traces if trace["relevant"]}
    qrels = {query: trace["relevant"] for query, trace in judged.items()}
    run = {query: trace["evidence"] for query, trace in judged.items()}
    return np.array([*run_values(run, qrels, Measure.parse(name)).values()], dtype=np.float64)


def recall(trace: Trace, documents: Sequence[str]) -> float:
    """Return the share of a question's relevant documents that are among some documents."""
    return len(trace["relevant"].keys() & set(documents)) / len(trace["relevant"])


def replies(traces: Sequence[Trace]) -> dict[str, Any]:
    """Return what language models were asked over all questions; empty where they were asked nothing.

    The counts of :data:`quit.qa.sunar.reading.COUNTS`, of which ``unread`` also has replies of the planner
    (``unread_plans``) and of the meta reasoner without an answer (``unread_mer``). ``ended``: why plans ended, by
    reason; ``prediction_from``: where the predictions come from.
    """
    counts: Counter[str] = Counter()
    for trace in traces:
        counts.update(trace["replies"])
    if not counts["calls"]:
        return {}
    plans = sum(trace["ended"]["reason"].endswith(UNREAD) for trace in traces)
    without_answer = sum(trace["mer"] is not None and trace["mer"]["answer"] is None for trace in traces)
    counts["unread"] += plans + without_answer
    return {
        **counts,
        "unread_plans": plans,
        "unread_mer": without_answer,
        "ended": dict(sorted(Counter(trace["ended"]["reason"] for trace in traces).items())),
        "prediction_from": dict(sorted(Counter(trace["prediction_from"] for trace in traces).items())),
    }


def _mean(values: Sequence[float] | np.ndarray) -> float | None:
    return round(float(np.mean(values)), 6) if len(values) else None

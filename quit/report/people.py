"""What people said, for the report: progress, their agreement with one another, and the judge's with them. No one is
named."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from quit.engine.workspace import Workspace
from quit.evaluate.agreement import cohen_kappa
from quit.review.report import review_status
from quit.review.store import ReviewStore
from quit.settings import Review
from quit.stages.labelling.verdicts import decide, live_reviews, of_kind


def review_progress(workspace: Workspace, settings: Review) -> dict[str, Any] | None:
    """Return what :func:`quit.review.report.review_status` says without anybody's address, or None before the first
    review.

    Annotators are numbered by address. ``splits``: of the splits that people review, ``asked``: questions;
    ``reviewed``: those of them with a submitted annotation.
    """
    status = review_status(workspace, settings)
    if not status["reviews"]["rows"]:
        return None
    names = sorted({row["annotator"] for row in status["annotators"]})
    number = {name: f"annotator {position}" for position, name in enumerate(names, start=1)}
    with workspace.connect() as connection:
        connection.register("live", live_reviews(ReviewStore(workspace).read()))
        counts = connection.execute(
            """
            SELECT split, count(*), count(*) FILTER (question_id IN (SELECT question_id FROM live))
            FROM splits WHERE list_contains($splits, split) GROUP BY 1 ORDER BY 1
            """,
            {"splits": list(settings.splits)},
        ).fetchall()
    names_of_facts = ("reviews", "annotators", "kinds", "agreement", "controls", "decided", "open", "applied")
    return {
        "splits": [{"split": split, "asked": count, "reviewed": reviewed} for split, count, reviewed in counts],
        **_numbered({name: status[name] for name in names_of_facts}, number),
    }


def _numbered(value: Any, number: dict[str, str]) -> Any:
    """Return JSON-like values with numbers in place of names."""
    if isinstance(value, dict):
        return {key: _numbered(entry, number) for key, entry in value.items()}
    if isinstance(value, list):
        return [_numbered(entry, number) for entry in value]
    return number.get(value, value) if isinstance(value, str) else value


def judge_against_people(workspace: Workspace, settings: Review) -> dict[str, Any] | None:
    """Return how the judge's verdicts compare with what people settled, or None where they settled none of them.

    Only answers that the judge had to decide (basis ``model``) count. ``both_yes``, ``only_judge``, ``only_people``,
    ``both_no``: answers; ``unread``: settled answers whose verdict could not be read; ``agreement``: share alike;
    ``kappa``: Cohen's, None where it is not defined. ``kinds``: the same for blind pages and for the others, each a
    dict with ``blind``.
    """
    live = live_reviews(ReviewStore(workspace).read())
    compared = _compared(workspace, settings, live)
    if compared is None:
        return None
    kinds = [
        {"blind": blind, **of_one}
        for blind in (True, False)
        if (of_one := _compared(workspace, settings, of_kind(live, blind)))
    ]
    return {**compared, "kinds": kinds}


def _compared(workspace: Workspace, settings: Review, reviews: pa.Table) -> dict[str, Any] | None:
    settled = {
        (row["question_id"], row["key"]): row["decision"]
        for row in decide(reviews, settings).to_pylist()
        if row["kind"] == "answer" and row["decision"] is not None
    }
    ids = sorted({question for question, _ in settled})
    rows = workspace.read_questions("verdicts", ids, ("question_id", "answer_key", "correct", "basis"), runs=["judge"])
    judge, people, unread = [], [], 0
    for row in rows.to_pylist():
        decision = settled.get((row["question_id"], row["answer_key"]))
        if row["basis"] == "model" and decision is not None:
            if row["correct"] is None:
                unread += 1
                continue
            judge.append(row["correct"])
            people.append(decision)
    if not judge:
        return None
    pairs = list(zip(judge, people, strict=True))
    return {
        "answers": len(pairs),
        "both_yes": pairs.count((True, True)),
        "only_judge": pairs.count((True, False)),
        "only_people": pairs.count((False, True)),
        "both_no": pairs.count((False, False)),
        "unread": unread,
        "agreement": sum(first == other for first, other in pairs) / len(pairs),
        "kappa": cohen_kappa(judge, people),
    }

"""Apply reviews to a workspace's labels, or take them off again: the label update as an operation on the workspace."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from quit.errors import InputError
from quit.pipeline import Pipeline
from quit.ranges import WHOLE
from quit.review.store import ReviewStore
from quit.review.verdicts import disagreements
from quit.workspace import Workspace


@dataclass
class ApplyReport:
    """What people's verdicts changed, against the labels without any. ``applied``: pulls the labels rest on; ``ran``: whether there
    was anything to do; ``open``: decisions that wait for more votes or an adjudicator."""

    applied: int = 0
    ran: bool = False
    fingerprint: str | None = None
    decided: int = 0
    open: int = 0
    questions: int = 0
    labels_up: int = 0
    labels_down: int = 0
    answers_added: int = 0
    answers_removed: int = 0
    questions_removed: dict[str, int] = field(default_factory=dict)


def apply_reviews(pipeline: Pipeline, withdraw: bool = False) -> ApplyReport:
    """Let labels rest on every review pulled so far (``withdraw``: on none) and return what that changes.

    The pipeline's build must be finished up to the labels; raises :class:`InputError` otherwise. What was applied is remembered first,
    so a killed update is finished by the next one, or by the next build; until then the tables are those of before.
    """
    workspace = pipeline.workspace
    store = ReviewStore(workspace)
    with workspace.lock(pipeline.settings.run.lock_seconds):
        base = [run for run in pipeline.runs if run.stage.name != "update"]
        state = workspace.state
        for run in base:
            if not pipeline.is_done(run) or state.get(run.key) != pipeline.fingerprints[run.key]:
                raise InputError(
                    f"The stage {run.key!r} of {workspace} is not up to date: there are no labels to update yet. Run: "
                    f"quit build -w {workspace}"
                )
        store.set_applied([] if withdraw else store.parts)
        updated = Pipeline(workspace, pipeline.settings, pipeline.sources, models=pipeline.models)
        ran = updated.fingerprints != state
        if not updated.reviews_applied:
            workspace.set_current({run.key: updated.fingerprints[run.key] for run in base})
            return ApplyReport(ran=ran)
        run = updated.run("update")
        if not updated.is_done(run):
            updated.work(run, WHOLE)
        updated.finish(run)
        return _report(updated, store, ran)


def _report(pipeline: Pipeline, store: ReviewStore, ran: bool) -> ApplyReport:
    decisions = pipeline.decisions.to_pylist()
    counts = change_counts(pipeline.workspace)
    return ApplyReport(
        applied=len(store.applied),
        ran=ran,
        fingerprint=pipeline.fingerprints["update"],
        decided=sum(row["decision"] is not None for row in decisions),
        open=len(disagreements(pipeline.decisions)),
        **counts,
    )


def change_counts(workspace: Workspace) -> dict[str, Any]:
    """Return what the current label update changed, by kind; all zero where none is applied."""
    with workspace.connect() as connection:
        row = connection.execute(
            """
            SELECT count(DISTINCT question_id), count(*) FILTER (change = 'label' AND after > before),
                   count(*) FILTER (change = 'label' AND after < before), count(*) FILTER (change = 'answer_added'),
                   count(*) FILTER (change = 'answer_removed')
            FROM changes
            """
        ).fetchone()
        gone = connection.execute(
            "SELECT reason, count(*) FROM rejects WHERE stage = 'update' GROUP BY 1 ORDER BY 1"
        ).fetchall()
    names = ("questions", "labels_up", "labels_down", "answers_added", "answers_removed")
    return {**dict(zip(names, row or (0,) * 5, strict=True)), "questions_removed": dict(gone)}

"""Which reviews labels rest on, and what they changed. The flow ``label-update`` carries the update out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypedDict, cast

from quit.common.rows import sql_rows
from quit.engine.applied import AppliedReviews
from quit.engine.pipeline import Pipeline
from quit.engine.questions import decision_counts
from quit.engine.workspace import Workspace
from quit.errors import InputError
from quit.review.store import ReviewStore
from quit.text.words import shell_word

_SUMS = ("labels_up", "labels_down", "answers_added", "answers_removed")


class Changes(TypedDict):
    """What reviews changed in the labels: questions, passages, valid answers; questions removed by reason."""

    questions: int
    labels_up: int
    labels_down: int
    answers_added: int
    answers_removed: int
    questions_removed: dict[str, int]


@dataclass
class ApplyReport:
    """What people's verdicts changed, against the labels without any. ``applied``: pulls the labels rest on; ``ran``:
    whether there was anything to do; ``decided`` and ``open``: of the splits under review; ``open`` ones wait for more
    votes or an adjudicator;
    ``questions_removed``: by reason; ``now``: by how much these sums are more than before the call."""

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
    now: dict[str, int] = field(default_factory=dict)


def plan_update(pipeline: Pipeline, withdraw: bool = False) -> bool:
    """Let labels rest on every review pulled so far (``withdraw``: on none) in a build of which nothing was planned
    yet, and return whether that leaves anything to do.

    The caller holds the workspace and runs the stage ``update``, with ``labels.partial`` also those that ask about
    passages whose answer people reject. Which reviews count is written down first: after a
    kill the next update or build finishes it. Until then the earlier tables stay current, except those that
    ``labels.partial`` makes again. Raises :class:`InputError` where the build is not finished up to the labels.
    """
    workspace, store = pipeline.workspace, ReviewStore(pipeline.workspace)
    parts = [] if withdraw else store.parts
    applied = [store.folder / name for name in parts]
    pipeline.reviews = AppliedReviews(workspace, pipeline.settings.review, applied)
    if store.applied == parts and pipeline.up_to_date:
        return False
    for run in pipeline.runs:
        if run not in pipeline.review_dependent_runs and not pipeline.is_current(run):
            raise InputError(
                f"The stage {run.key!r} of {workspace} is not up to date: there are no labels to update yet. Run: "
                f"quit build -w {shell_word(workspace)}"
            )
    store.set_applied(parts)
    return True


def report(pipeline: Pipeline, ran: bool) -> ApplyReport:
    """Return what the applied reviews changed; all zero where none are applied."""
    if not pipeline.reviews.parts:
        return ApplyReport(ran=ran)
    decided, undecided = decision_counts(
        pipeline.workspace, pipeline.reviews.fitting_decisions, pipeline.settings.review
    )
    return ApplyReport(
        applied=len(ReviewStore(pipeline.workspace).applied),
        ran=ran,
        fingerprint=pipeline.fingerprints["update"],
        decided=decided,
        open=undecided,
        **change_counts(pipeline.workspace),
    )


def change_counts(workspace: Workspace) -> Changes:
    """Return what reviews changed in the current label update, by kind: not what the second leakage filter alone left
    out."""
    with workspace.connect(tables=["changes", "rejects"]) as connection:
        [sums] = sql_rows(
            connection,
            """
            SELECT count(DISTINCT question_id) FILTER (len(reviews) > 0) AS questions,
                   count(*) FILTER (change = 'label' AND after > before) AS labels_up,
                   count(*) FILTER (change = 'label' AND after < before) AS labels_down,
                   count(*) FILTER (change = 'answer_added') AS answers_added,
                   count(*) FILTER (change = 'answer_removed') AS answers_removed FROM changes
            """,
        )
        reasons = """
            SELECT reason, count(*) FROM rejects WHERE stage = 'update' AND question_id IN (
                SELECT question_id FROM changes WHERE change = 'question_removed' AND len(reviews) > 0)
            GROUP BY 1 ORDER BY 1"""
        return cast(Changes, {**sums, "questions_removed": dict(connection.execute(reasons).fetchall())})


def difference(before: ApplyReport, after: ApplyReport) -> dict[str, int]:
    """Return by how much the sums of an update are more than those of the one before, questions removed all told."""
    sums = {name: getattr(after, name) - getattr(before, name) for name in _SUMS}
    removed_before, removed = (sum(each.questions_removed.values()) for each in (before, after))
    return {**sums, "questions_removed": removed - removed_before}

"""How far a review is: what was pushed, pulled and applied, and figures of what counts."""

from __future__ import annotations

from typing import TypedDict

import pyarrow as pa
import pyarrow.compute as pc

from quit.common.arithmetic import sum_in_order
from quit.common.rows import Row, grouped, tuples
from quit.engine.questions import decision_counts, fitting_rows
from quit.engine.workspace import Workspace
from quit.review.apply import Changes, change_counts
from quit.review.audit import AuditFigures, audit_figures
from quit.review.controls import Controls, ControlScore, control_scores, controls_of
from quit.review.figures import AnswerAgreement, FlagRow, KindRow, agreement, flags, kinds
from quit.review.people import absent_people, without_absent
from quit.review.store import ReviewStore
from quit.settings import Review
from quit.stages.labelling.rulings import settled_decisions, with_rulings
from quit.stages.labelling.verdicts import (
    Coverage,
    annotations_of,
    coverage,
    decide,
    disagreements,
    live_reviews,
    unclear_annotations,
)


class ProjectStatus(TypedDict):
    """The project in Label Studio, as of the last push or pull."""

    id: int | None
    url: str | None
    tasks: int
    controls: int
    done: int


class ReviewCounts(TypedDict):
    """What was pulled, and what of it does not count: of questions that have changed, flags on hints that have."""

    pulls: int
    rows: int
    annotations: int
    questions: int
    set_aside: int
    set_aside_questions: list[str]
    set_aside_flags: int


class AnnotatorRow(TypedDict):
    """What an annotator did. ``seconds``: of all annotations."""

    annotator: str
    questions: int
    seconds: float


class Applied(Changes):
    """What applied pulls changed; ``waiting``: pulls that are not applied."""

    pulls: int
    waiting: int


class ReviewFigures(TypedDict):
    """What :func:`quit.review.report.described` shows of a review, also in the report."""

    reviews: ReviewCounts
    annotators: list[AnnotatorRow]
    kinds: list[KindRow]
    flags: list[FlagRow]
    agreement: AnswerAgreement
    controls: list[ControlScore]
    decided: int
    open: int
    coverage: dict[str, Coverage]
    applied: Applied


class ReviewStatus(ReviewFigures, AuditFigures):
    """How far a review is. ``decided`` and ``open``: decisions on the splits under review; ``coverage``: of each of
    these splits, as of all pulls (:func:`quit.stages.labelling.verdicts.coverage`); ``problems``: in words, each with
    what to do."""

    project: ProjectStatus
    unclear: list[Row]
    disagreements: list[Row]
    problems: list[str]


def review_status(workspace: Workspace, settings: Review) -> ReviewStatus:
    """Return the state of a workspace's review as JSON-like values; nothing is asked of a server.

    A file of control questions or of people that is no longer there is left out, and the log says so.
    """
    settings = without_absent(settings, "people", "controls")
    store = ReviewStore(workspace)
    reviews = store.read()
    every = live_reviews(reviews)
    live = fitting_rows(workspace, every)
    decisions = decide(live, settings)
    controls = controls_of(settings)
    seconds = grouped((name, value or 0.0) for name, value in tuples(annotations_of(live), "annotator", "lead_seconds"))
    decided, undecided = decision_counts(workspace, decisions, settings)
    return {
        "project": _project(store, controls),
        "reviews": _counts(workspace, store, reviews, every, live),
        "annotators": [
            {"annotator": name, "questions": len(values), "seconds": sum_in_order(values)}
            for name, values in sorted(seconds.items())
        ],
        "kinds": kinds(live, controls),
        "flags": flags(live, decisions),
        "agreement": agreement(live),
        "controls": control_scores(live, controls),
        "unclear": unclear_annotations(reviews),
        "decided": decided,
        "open": undecided,
        "coverage": _coverage(workspace, decisions, settings),
        "disagreements": disagreements(decisions),
        "applied": {
            "pulls": len(store.applied),
            "waiting": len(set(store.parts) - set(store.applied)) if store.applied else len(store.parts),
            **change_counts(workspace),
        },
        "problems": [*(store.sync.get("problems") or ()), *absent_people(settings, {*seconds})],
        **audit_figures(workspace, settings, live),
    }


def _project(store: ReviewStore, controls: Controls | None) -> ProjectStatus:
    project, sync = store.project, store.sync
    tasks = project.get("tasks", ())
    return {
        "id": project.get("id"),
        "url": project.get("url"),
        "tasks": len(tasks) or sync.get("tasks", 0),
        "controls": len(controls.questions & {*tasks}) if controls else 0,
        "done": sync.get("done", 0) if sync.get("project") == [project.get("key"), project.get("id")] else 0,
    }


def _counts(
    workspace: Workspace, store: ReviewStore, reviews: pa.Table, every: pa.Table, live: pa.Table
) -> ReviewCounts:
    """Return what was pulled; ``every``: rows of ``reviews`` that would count; ``live``: of these, those that fit."""
    headers = annotations_of(live)
    fits = pc.is_in(every["review_id"], live["review_id"].combine_chunks())
    set_aside = every.filter(pc.invert(fits))
    ids = set_aside["question_id"].unique().to_pylist()
    changed_questions = workspace.read("questions", columns=["question_id"], question_ids=ids)
    return {
        "pulls": len(store.parts),
        "rows": len(reviews),
        "annotations": len(headers),
        "questions": len(headers["question_id"].unique()),
        "set_aside": len(set_aside["review_id"].unique()),
        "set_aside_questions": sorted(changed_questions["question_id"].to_pylist()),
        "set_aside_flags": len(every.filter(fits)) - len(live),
    }


def _coverage(workspace: Workspace, decisions: pa.Table, settings: Review) -> dict[str, Coverage]:
    """Return split under review -> how far people judged it, if these decisions were applied."""
    splits = workspace.read("splits", runs=["split"])
    verdicts = workspace.read("verdicts", runs=["judge"])
    by_people = with_rulings(verdicts, settled_decisions(decisions, splits, settings))
    return {split: coverage([by_people], splits, [split]) for split in settings.splits}

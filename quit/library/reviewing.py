"""The jobs of people's review: push, pull, and the update of the labels. They are called as those of
:mod:`quit.library.jobs`, and are safe to repeat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypedDict

from quit.common.progress import note
from quit.common.tasks import Step, directly
from quit.errors import InputError, SettingsError, check_known
from quit.library.results import JobResult

if TYPE_CHECKING:
    from quit.annotation.reports import PullReport, PushReport
    from quit.engine.pipeline import Pipeline
    from quit.engine.workspace import Workspace
    from quit.review.apply import ApplyReport

_NOTHING_NEW = {"push": "the project is up to date", "pull": "every review was pulled"}
"""Step of a sync -> what it means that it has no news."""


class SyncReports(TypedDict, total=False):
    """What the steps of a sync did."""

    push: PushReport
    pull: PullReport


def review_sync(
    workspace: str | Workspace,
    url: str = "",
    steps: Sequence[str] = ("push", "pull"),
    project: int = 0,
    *,
    new_project: bool = False,
    repair: bool = False,
    full: bool = False,
    accept_withdrawals: bool = False,
    settings: Sequence[str] = (),
    step: Step = directly,
) -> JobResult[SyncReports]:
    """Push what is to be reviewed and pull what people did. The result: step -> its report
    (:mod:`quit.annotation.reports`).

    A push that is refused fails the job at its end: what people did is pulled all the same.

    Args:
        workspace: Folder of the workspace, as the machine that runs this sees it.
        url: The Label Studio server; the workspace's local one if not given. Its token comes from the environment
            alone.
        steps: What is done; push, pull or both.
        project: Number of the project, where several belong to this workspace; 0 is the only one.
        new_project: Whether to make a new project and leave the known one.
        repair: Whether to put back a labelling page that someone edited.
        full: Whether to read every task, not only those changed since the last pull.
        accept_withdrawals: Whether to withdraw the reviews of annotations that are gone, many at once too.
        settings: review.KEY=VALUE, remembered from now on.

    Raises:
        InputError: Nothing was built, or there is nothing to review.
        ServerError: Label Studio does not answer.
        SettingsError: A step is unknown, or none is named; a setting is of another section.
        WorkspaceError: Another run holds the workspace.
    """
    from quit.engine.planning import locked_last_build

    if not steps:
        raise SettingsError("There is no step to do: name push, pull or both.")
    for name in steps:
        check_known(name, _NOTHING_NEW, "step")
    reports: SyncReports = {}
    refusal: InputError | None = None
    with locked_last_build(workspace, settings) as pipeline:
        try:
            if "push" in steps:  # the most informative first (3.2.3)
                send = partial(_push, new_project=new_project, repair=repair)
                reports["push"] = step("push", send, pipeline, url, project or None)
        except InputError as error:
            refusal = error
        try:
            if "pull" in steps:  # annotations -> reviews
                read = partial(_pull, full=full, accept_withdrawals=accept_withdrawals)
                reports["pull"] = step("pull", read, pipeline, url, project or None)
        except InputError as error:
            refusal = refusal or error
    if refusal:
        raise refusal
    if any(report.has_news for report in (reports.get("push"), reports.get("pull")) if report):
        return JobResult(reports)
    return JobResult(reports, f"Nothing new: {', and '.join(_NOTHING_NEW[name] for name in reports)}.")


def label_update(
    workspace: str | Workspace, *, withdraw: bool = False, settings: Sequence[str] = (), step: Step = directly
) -> JobResult[dict[str, ApplyReport]]:
    """Update the labels by every review that was pulled: people's verdicts over the judge's (3.2.4). The result:
    ``update`` -> :class:`quit.review.apply.ApplyReport`. Errors: as of :func:`review_sync`.

    Args:
        workspace: Folder of the workspace, as the machine that runs this sees it.
        withdraw: Whether to take every review off the labels again.
        settings: review.KEY=VALUE, remembered from now on.
    """
    from quit.engine.planning import locked_last_build
    from quit.review.apply import plan_update

    with locked_last_build(workspace, settings, runs=True) as pipeline:
        report = step("update", _update, pipeline, plan_update(pipeline, withdraw))
    nothing_new = None if report.ran else "Nothing new: the labels use every review that was pulled."
    return JobResult({"update": report}, nothing_new)


def _push(pipeline: Pipeline, url: str, project: int | None, new_project: bool, repair: bool) -> PushReport:
    from quit.annotation.client import connect
    from quit.annotation.push import push
    from quit.review.audit import draw_audit
    from quit.review.controls import controls_of
    from quit.review.items import review_items
    from quit.review.store import ReviewStore

    workspace, settings = pipeline.workspace, pipeline.settings
    controls = controls_of(settings.review)
    held_back = sorted(controls.questions) if controls else ()
    audit = draw_audit(workspace, settings)
    items = review_items(workspace, settings.review, settings.judge.threshold, held_back, audit)
    if not items:
        splits = ", ".join(settings.review.splits)
        raise InputError(f"There is nothing to review: {workspace} has no labelled question in {splits}.")
    server, store = connect(workspace.path, settings.review, url or None), ReviewStore(workspace)
    return push(
        store, server, settings, items, controls, project=project, new_project=new_project, repair=repair, say=note
    )


def _pull(pipeline: Pipeline, url: str, project: int | None, full: bool, accept_withdrawals: bool) -> PullReport:
    from quit.annotation.client import connect
    from quit.annotation.sync import pull
    from quit.review.store import ReviewStore

    workspace, settings = pipeline.workspace, pipeline.settings
    server = connect(workspace.path, settings.review, url or None)
    store = ReviewStore(workspace)
    return pull(store, server, settings, project=project, full=full, accept_withdrawals=accept_withdrawals)


def _update(pipeline: Pipeline, changed: bool) -> ApplyReport:
    from quit.engine.execution import execution
    from quit.review.apply import ApplyReport, change_counts, difference, report

    if not changed:
        same = report(pipeline, ran=False)
        return replace(same, now=difference(same, same))
    workspace, state = pipeline.workspace, pipeline.workspace.state
    before = ApplyReport(**change_counts(workspace)) if "update" in workspace.current() else ApplyReport()
    with execution(pipeline, runner="threads") as run_stage:
        for stage in dict.fromkeys(run.stage for run in pipeline.review_dependent_runs):
            run_stage(stage)
    pipeline.begin()  # only now: until the update is done, the tables are those of before
    after = report(pipeline, ran=pipeline.fingerprints != state)
    return replace(after, now=difference(before, after))

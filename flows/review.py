"""The review flows: push and pull, update the labels, and both. They can run on a schedule during people's work; all
are safe to repeat."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from prefect import flow, task
from prefect.artifacts import create_link_artifact, create_markdown_artifact
from prefect.cache_policies import NO_CACHE
from prefect.logging import get_run_logger

from flows.notices import HOOKS
from flows.parameters import NO_LIMITS, Step
from flows.scheduling import FlowResult, run_held, run_with_limits
from flows.shards import StageExecutor, may_help
from quit.common.endpoints import address
from quit.common.progress import note
from quit.engine.pipeline import Pipeline
from quit.engine.planning import held_last_build
from quit.errors import InputError, without_secrets_in_errors
from quit.review.apply import plan_update
from quit.review.apply import report as update_report
from quit.review.items import review_items
from quit.review.report import controls_of, markdown, review_status
from quit.review.store import ReviewStore
from quit.settings import Limits
from quit.status.summary import markdown_links

Reports = dict[str, dict[str, Any]]
"""What the steps ``push``, ``pull`` and ``update`` did, by step."""


@task(name="push", cache_policy=NO_CACHE, retries=2, retry_delay_seconds=10, retry_condition_fn=may_help)
@without_secrets_in_errors
def push(pipeline: Pipeline, url: str | None, project: int | None, new_project: bool, repair: bool) -> dict[str, Any]:
    """Bring the project on the server up to date; returns what was done."""
    from annotation.client import connect  # not at the top: to update labels needs no Label Studio, which takes seconds
    from annotation.project import push as push_items

    workspace, settings = pipeline.workspace, pipeline.settings
    controls = controls_of(settings.review)
    held_back = sorted(controls.questions) if controls else ()
    items = review_items(workspace, settings.review, settings.judge.threshold, held_back)
    if not items:
        splits = ", ".join(settings.review.splits)
        raise InputError(f"There is nothing to review: {workspace} has no labelled question in {splits}.")
    server = connect(workspace.path, settings.review, url)
    report = push_items(
        ReviewStore(workspace),
        server,
        settings,
        items,
        controls,
        project=project,
        new_project=new_project,
        repair=repair,
        say=note,
    )
    return asdict(report)


@task(name="pull", cache_policy=NO_CACHE, retries=2, retry_delay_seconds=10, retry_condition_fn=may_help)
@without_secrets_in_errors
def pull(pipeline: Pipeline, url: str | None, project: int | None, full: bool) -> dict[str, Any]:
    """Append what people did since the last pull to `reviews`; returns counts."""
    from annotation.client import connect
    from annotation.sync import pull as pull_reviews

    workspace, settings = pipeline.workspace, pipeline.settings
    server = connect(workspace.path, settings.review, url)
    return asdict(pull_reviews(ReviewStore(workspace), server, settings, project=project, full=full))


@flow(name="review", **HOOKS)
def review(workspace: str, url: str | None = None, limits: Limits = NO_LIMITS) -> Reports:
    """Push what is to be reviewed, pull what people did, update the labels; returns what each step did.

    Args:
        workspace: Folder of the workspace, as the machine that runs this sees it.
        url: The Label Studio server; the workspace's local one if not given. Its token comes from the environment
            alone.
        limits: Timeout, retries, and who is notified of a failure.
    """

    def job(pipeline: Pipeline) -> Reports:
        reports = _exchange(pipeline, ("push", "pull"), url)
        return {**reports, "update": _update(pipeline)}  # people's verdicts over the judge's (3.2.4)

    return _run(workspace, None, limits, job)


@flow(name="review-sync", **HOOKS)
def review_sync(
    workspace: str,
    url: str | None = None,
    steps: Sequence[Step] = ("push", "pull"),
    project: int | None = None,
    new_project: bool = False,
    repair: bool = False,
    full: bool = False,
    settings: list[str] | None = None,
    limits: Limits = NO_LIMITS,
) -> Reports:
    """Push what is to be reviewed and pull what people did; labels stay as they are. Returns what each step did.

    Args:
        workspace: Folder of the workspace, as the machine that runs this sees it.
        url: The Label Studio server; the workspace's local one if not given. Its token comes from the environment
            alone.
        steps: push, pull or both.
        project: Number of the project, where several belong to this workspace.
        new_project: Whether to make a new project and leave the known one.
        repair: Whether to put back a labelling page that someone edited.
        full: Whether to read every task, not only those changed since the last pull.
        settings: review.KEY=VALUE, remembered from now on.
        limits: Timeout, retries, and who is notified of a failure.
    """

    def job(pipeline: Pipeline) -> Reports:
        return _exchange(pipeline, steps, url, project, new_project=new_project, repair=repair, full=full)

    return _run(workspace, settings, limits, job)


@flow(name="label-update", **HOOKS)
def label_update(
    workspace: str, withdraw: bool = False, settings: list[str] | None = None, limits: Limits = NO_LIMITS
) -> Reports:
    """Update the labels by every review pulled so far; returns what changed, under ``update``.

    Args:
        workspace: Folder of the workspace, as the machine that runs this sees it.
        withdraw: Whether to take every review off the labels again.
        settings: review.KEY=VALUE, remembered from now on.
        limits: Timeout, retries, and who is notified of a failure.
    """

    return _run(workspace, settings, limits, lambda pipeline: {"update": _update(pipeline, withdraw)})


def update_held(pipeline: Pipeline, withdraw: bool) -> Reports:
    """Run the flow ``label-update`` on a build that the caller has opened."""
    return run_held("label-update", pipeline, lambda: _ended(pipeline, {"update": _update(pipeline, withdraw)}))


def _run(workspace: str, settings: list[str] | None, limits: Limits, job: Callable[[Pipeline], Reports]) -> Reports:
    """Do a job on a workspace's last build, under a flow's limits."""

    def work() -> FlowResult:
        with held_last_build(workspace, settings or ()) as pipeline:
            return _ended(pipeline, job(pipeline))

    return run_with_limits(limits, work)


def _exchange(
    pipeline: Pipeline,
    steps: Sequence[str],
    url: str | None,
    project: int | None = None,
    *,
    new_project: bool = False,
    repair: bool = False,
    full: bool = False,
) -> Reports:
    reports: Reports = {}
    if "push" in steps:  # questions of dev and test, the most informative first (3.2.3)
        reports["push"] = push(pipeline, url, project, new_project, repair)
    if "pull" in steps:  # annotations -> reviews
        reports["pull"] = pull(pipeline, url, project, full)
    return reports


def _update(pipeline: Pipeline, withdraw: bool = False) -> dict[str, Any]:
    before = pipeline.workspace.state
    updated = plan_update(pipeline, withdraw)
    with StageExecutor(updated, runner="threads") as carry_out:
        for stage in dict.fromkeys(run.stage for run in updated.after_reviews):
            carry_out(stage)
    updated.begin()  # only now: until the update is done, the tables are those of before
    return asdict(update_report(updated, ran=updated.fingerprints != before))


def _ended(pipeline: Pipeline, reports: Reports) -> FlowResult:
    workspace = pipeline.workspace
    for step, report in reports.items():
        get_run_logger().info("%s: %s", step, report)
    summary = markdown_links(workspace) + markdown(review_status(workspace, pipeline.settings.review))
    create_markdown_artifact(summary, key="quit-review-summary", description="Done, open, agreement, label changes")
    project = ReviewStore(workspace).project
    if project.get("url") and project.get("id"):
        link = f"{address(project['url'])}/projects/{project['id']}/data"
        create_link_artifact(link, link_text="Review project", key="quit-review-project")
    return FlowResult(reports, None if any(map(_did_something, reports.values())) else NOTHING_NEW)


NOTHING_NEW = "Nothing new: the project is up to date, and the labels use every review that was pulled."


def _did_something(report: dict[str, Any]) -> bool:
    return any(report.get(name) for name in ("created", "new", "changed", "remade", "rows", "ran"))

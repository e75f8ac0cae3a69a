"""The review flows: push and pull, and update the labels. They can run on a schedule during people's work; both are
safe to repeat."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from prefect import flow
from prefect.artifacts import create_link_artifact, create_markdown_artifact
from prefect.logging import get_run_logger

from quit.common.endpoints import address
from quit.engine.workspace import Workspace
from quit.flows.parameters import NO_LIMITS, Step
from quit.flows.scheduling import run_with_limits
from quit.flows.tasks import as_task
from quit.library import jobs
from quit.library.jobs import JobResult
from quit.review.report import markdown, review_status
from quit.review.store import ReviewStore
from quit.settings import Limits
from quit.status.stages import settings_of
from quit.status.summary import markdown_links

Reports = dict[str, dict[str, Any]]
"""What the steps ``push``, ``pull`` and ``update`` did, by step."""


@flow(name="review-sync")
def review_sync(
    workspace: str,
    url: str = "",
    steps: Sequence[Step] = ("push", "pull"),
    project: int = 0,
    new_project: bool = False,
    repair: bool = False,
    full: bool = False,
    accept_withdrawals: bool = False,
    settings: Sequence[str] = (),
    limits: Limits = NO_LIMITS,
) -> Reports:
    """Push what is to be reviewed and pull what people did; labels stay as they are. Returns what each step did.

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
        limits: Timeout and retries.
    """
    options: dict[str, Any] = {"new_project": new_project, "repair": repair, "full": full, "settings": settings}
    options["accept_withdrawals"] = accept_withdrawals
    return _run(limits, jobs.review_sync, workspace, url, steps, project, **options)


@flow(name="label-update")
def label_update(
    workspace: str, withdraw: bool = False, settings: Sequence[str] = (), limits: Limits = NO_LIMITS
) -> Reports:
    """Update the labels by every review pulled so far; returns what changed, under ``update``.

    Args:
        workspace: Folder of the workspace, as the machine that runs this sees it.
        withdraw: Whether to take every review off the labels again.
        settings: review.KEY=VALUE, remembered from now on.
        limits: Timeout and retries.
    """
    return _run(limits, jobs.label_update, workspace, withdraw=withdraw, settings=settings)


def _run(limits: Limits, job: Callable[..., JobResult], workspace: str, *arguments: Any, **options: Any) -> Reports:
    def work() -> JobResult:
        outcome = job(workspace, *arguments, **options, step=as_task)
        for step, report in outcome.result.items():
            get_run_logger().info("%s: %s", step, report)
        source = Workspace.open(workspace)
        summary = markdown_links(source) + markdown(review_status(source, settings_of(source).review))
        create_markdown_artifact(summary, key="quit-review-summary", description="Done, open, agreement, label changes")
        project = ReviewStore(source).project
        if project.get("url") and project.get("id"):
            link = f"{address(project['url'])}/projects/{project['id']}/data"
            create_link_artifact(link, link_text="Review project", key="quit-review-project")
        return outcome

    return run_with_limits(limits, work)

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
from quit.flows.links import markdown_links
from quit.flows.parameters import Step, of_job
from quit.flows.scheduling import run_name
from quit.flows.tasks import as_task
from quit.library import reviewing
from quit.library.results import JobResult
from quit.review.report import markdown
from quit.review.status import review_status
from quit.review.store import ReviewStore
from quit.status.stages import settings_of


@flow(name="review-sync", flow_run_name=run_name)
@of_job(reviewing.review_sync, steps=Sequence[Step])
def review_sync(arguments: dict[str, Any]) -> JobResult[Any]:
    """Push what is to be reviewed and pull what people did; labels stay as they are. Returns what each step did."""
    return _shown(reviewing.review_sync, arguments)


@flow(name="label-update", flow_run_name=run_name)
@of_job(reviewing.label_update)
def label_update(arguments: dict[str, Any]) -> JobResult[Any]:
    """Update the labels by every review pulled so far; returns what changed, under ``update``."""
    return _shown(reviewing.label_update, arguments)


def _shown(job: Callable[..., JobResult[Any]], arguments: dict[str, Any]) -> JobResult[Any]:
    outcome = job(**arguments, step=as_task)
    for step, report in outcome.result.items():
        get_run_logger().info("%s: %s", step, report)
    source = Workspace.open(arguments["workspace"])
    summary = markdown_links(source) + markdown(review_status(source, settings_of(source).review))
    create_markdown_artifact(summary, key="quit-review-summary", description="Done, open, agreement, label changes")
    project = ReviewStore(source).project
    if project.get("url") and project.get("id"):
        link = f"{address(project['url'])}/projects/{project['id']}/data"
        create_link_artifact(link, link_text="Review project", key="quit-review-project")
    return outcome

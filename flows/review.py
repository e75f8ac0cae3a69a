"""The review flows: push and pull, apply, and all three. Meant to run on a schedule beside people's work; every step is safe to repeat."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from prefect import flow, task
from prefect.artifacts import create_link_artifact, create_markdown_artifact
from prefect.cache_policies import NO_CACHE
from prefect.logging import get_run_logger

from annotation.client import connect
from annotation.project import push as push_items
from annotation.sync import pull
from flows.notices import HOOKS
from flows.parameters import NO_LIMITS
from flows.scheduling import Ended, under_limits
from flows.shards import may_help
from quit.endpoints import address
from quit.errors import InputError, without_secrets_in_errors
from quit.pipeline import last_build
from quit.review.apply import apply_reviews
from quit.review.items import review_items
from quit.review.report import controls_of, markdown, review_status
from quit.review.store import ReviewStore
from quit.settings import Limits
from quit.summary import markdown_links
from quit.workspace import Workspace


@task(name="push", cache_policy=NO_CACHE, retries=2, retry_delay_seconds=10, retry_condition_fn=may_help)
@without_secrets_in_errors
def push_tasks(workspace: str, url: str | None) -> dict[str, Any]:
    """Bring the project on the server up to date; returns what was done."""
    opened = Workspace.open(workspace)
    settings = last_build(opened).settings
    with opened.lock(settings.run.lock_seconds, _waiting):  # a build under way would show half of its tables
        controls = controls_of(settings.review)
        items = review_items(
            opened, settings.review, settings.judge.threshold, sorted(controls.questions) if controls else ()
        )
        if not items:
            raise InputError(f"There is nothing to review in {workspace}: build it first.")
        server = connect(opened.path, settings.review, url)
        return asdict(push_items(ReviewStore(opened), server, settings, items, controls))


@task(name="sync", cache_policy=NO_CACHE, retries=2, retry_delay_seconds=10, retry_condition_fn=may_help)
@without_secrets_in_errors
def sync(workspace: str, url: str | None) -> dict[str, Any]:
    """Append what people did since the last time to `reviews`; returns what was brought."""
    opened = Workspace.open(workspace)
    settings = last_build(opened).settings
    with opened.lock(settings.run.lock_seconds, _waiting):
        return asdict(pull(ReviewStore(opened), connect(opened.path, settings.review, url), settings))


@task(name="apply", cache_policy=NO_CACHE)
@without_secrets_in_errors
def apply(workspace: str) -> dict[str, Any]:
    """Update labels by every review pulled so far; returns what changed."""
    return asdict(apply_reviews(last_build(Workspace.open(workspace))))


@flow(name="review", **HOOKS)
def review(workspace: str, url: str | None = None, limits: Limits = NO_LIMITS) -> str:
    """Push what is to be reviewed, pull what people did, update the labels; returns the summary (Markdown).

    Args:
        workspace: Folder of the workspace, as the machine that runs this sees it.
        url: The Label Studio server; the workspace's local one if not given. Its token comes from the environment alone.
        limits: Timeout, retries, late runs, and who hears of a failure.
    """

    def work() -> Ended:
        exchanged = _exchange(workspace, url)
        changed = apply(workspace)  # people's verdicts over the judge's (3.2.4)
        get_run_logger().info("apply: %s", changed)
        return Ended(_summary(workspace), None if exchanged or changed["ran"] else NOTHING)

    return under_limits("review", workspace, limits, work)


@flow(name="review-sync", **HOOKS)
def review_sync(workspace: str, url: str | None = None, limits: Limits = NO_LIMITS) -> str:
    """Push what is to be reviewed and pull what people did; labels stay as they are. Returns the summary (Markdown).

    Args:
        workspace: Folder of the workspace, as the machine that runs this sees it.
        url: The Label Studio server; the workspace's local one if not given. Its token comes from the environment alone.
        limits: Timeout, retries, late runs, and who hears of a failure.
    """

    def work() -> Ended:
        exchanged = _exchange(workspace, url)
        return Ended(_summary(workspace), None if exchanged else NOTHING)

    return under_limits("review-sync", workspace, limits, work)


@flow(name="label-update", **HOOKS)
def label_update(workspace: str, limits: Limits = NO_LIMITS) -> str:
    """Update the labels by every review pulled so far; returns the summary (Markdown).

    Args:
        workspace: Folder of the workspace, as the machine that runs this sees it.
        limits: Timeout, retries, late runs, and who hears of a failure.
    """

    def work() -> Ended:
        changed = apply(workspace)
        get_run_logger().info("apply: %s", changed)
        nothing = None if changed["ran"] else "Nothing new: the labels rest on every review that was pulled."
        return Ended(_summary(workspace), nothing)

    return under_limits("label-update", workspace, limits, work)


NOTHING = "Nothing new: the project is up to date, and nobody has reviewed anything since the last time."


def _exchange(workspace: str, url: str | None) -> bool:
    """Push and pull; returns whether that changed anything on either side."""
    logger = get_run_logger()
    pushed = push_tasks(workspace, url)  # questions of dev and test, the most informative first (3.2.3)
    logger.info("push: %s", pushed)
    pulled = sync(workspace, url)  # annotations -> reviews
    logger.info("sync: %s", pulled)
    return bool(pushed["created"] or pushed["new"] or pushed["changed"] or pushed["remade"] or pulled["rows"])


def _summary(workspace: str) -> str:
    opened = Workspace.open(workspace)
    summary = markdown(review_status(opened, last_build(opened).settings.review))
    told = markdown_links(opened) + summary
    create_markdown_artifact(told, key="quit-review-summary", description="Done, open, agreement, label changes")
    project = ReviewStore(opened).project
    if project.get("url") and project.get("id"):
        link = f"{address(project['url'])}/projects/{project['id']}/data"
        create_link_artifact(link, link_text="Review project", key="quit-review-project")
    return summary


def _waiting(message: str) -> None:
    get_run_logger().warning(message)

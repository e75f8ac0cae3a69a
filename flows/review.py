"""The review flow: push, pull, apply. Meant to run on a schedule beside people's work; every step is safe to repeat."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from prefect import flow, task
from prefect.artifacts import create_markdown_artifact
from prefect.cache_policies import NO_CACHE
from prefect.logging import get_run_logger

from annotation.client import connect
from annotation.project import push as push_items
from annotation.sync import pull
from flows.build import may_help
from quit.errors import InputError
from quit.pipeline import last_build
from quit.review.apply import apply_reviews
from quit.review.items import review_items
from quit.review.report import controls_of, markdown, review_status
from quit.review.store import ReviewStore
from quit.workspace import Workspace


@task(name="push", cache_policy=NO_CACHE, retries=2, retry_delay_seconds=10, retry_condition_fn=may_help)
def push_tasks(workspace: str, url: str | None) -> dict[str, Any]:
    """Bring the project on the server up to date; returns what was done."""
    opened = Workspace.open(workspace)
    settings = last_build(opened).settings
    controls = controls_of(settings.review)
    items = review_items(
        opened, settings.review, settings.judge.threshold, sorted(controls.questions) if controls else ()
    )
    if not items:
        raise InputError(f"There is nothing to review in {workspace}: build it first.")
    server = connect(opened.path, settings.review, url)
    return asdict(push_items(ReviewStore(opened), server, settings, items, controls))


@task(name="sync", cache_policy=NO_CACHE, retries=2, retry_delay_seconds=10, retry_condition_fn=may_help)
def sync(workspace: str, url: str | None) -> dict[str, Any]:
    """Append what people did since the last time to `reviews`; returns what was brought."""
    opened = Workspace.open(workspace)
    settings = last_build(opened).settings
    return asdict(pull(ReviewStore(opened), connect(opened.path, settings.review, url), settings))


@task(name="apply", cache_policy=NO_CACHE)
def apply(workspace: str) -> dict[str, Any]:
    """Update labels by every review pulled so far; returns what changed."""
    return asdict(apply_reviews(last_build(Workspace.open(workspace))))


@flow(name="review")
def review(workspace: str, url: str | None = None) -> str:
    """Push what is to be reviewed, pull what people did, update the labels; returns the summary (Markdown).

    ``url``: the Label Studio server; the workspace's local one if not given. Its token comes from the environment alone.
    """
    logger = get_run_logger()
    logger.info("push: %s", push_tasks(workspace, url))  # questions of dev and test, the most informative first (3.2.3)
    logger.info("sync: %s", sync(workspace, url))  # annotations -> reviews
    logger.info("apply: %s", apply(workspace))  # people's verdicts over the judge's (3.2.4)
    opened = Workspace.open(workspace)
    summary = markdown(review_status(opened, last_build(opened).settings.review))
    create_markdown_artifact(summary, key="quit-review-summary", description="Done, open, agreement, label changes")
    return summary

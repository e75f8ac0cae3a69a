"""The release flow: check, create, export. Safe to repeat: tables that a release holds already are not frozen again."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

from prefect import flow, task
from prefect.artifacts import create_markdown_artifact
from prefect.cache_policies import NO_CACHE
from prefect.logging import get_run_logger

from flows.notices import HOOKS
from flows.parameters import NO_LIMITS, Format
from flows.scheduling import Ended, under_limits
from flows.shards import may_help
from quit.errors import without_secrets_in_errors
from quit.export import export as export_tables
from quit.export.release import export_tables_of_release, exported
from quit.models.factory import Models
from quit.pipeline import last_build
from quit.release.create import create, subject_of
from quit.release.gates import check as check_gates
from quit.release.gates import parse_waivers
from quit.release.release import Release, newest_release, open_release
from quit.release.show import lines
from quit.settings import Limits
from quit.summary import markdown_links
from quit.workspace import Workspace


@task(name="check", cache_policy=NO_CACHE)
@without_secrets_in_errors
def check(workspace: str, waive: list[str]) -> list[dict[str, Any]]:
    """Return what every gate says."""
    opened = Workspace.open(workspace)
    return [one.to_dict() for one in check_gates(subject_of(opened, last_build(opened)), parse_waivers(waive))]


@task(name="create", cache_policy=NO_CACHE)
@without_secrets_in_errors
def freeze(workspace: str, name: str, waive: list[str]) -> str:
    """Freeze the current tables; returns the release's folder."""
    opened = Workspace.open(workspace)
    pipeline = last_build(opened)
    waivers = parse_waivers(waive)
    return str(create(opened, pipeline, name, waivers=waivers, encoder=Models(pipeline.settings).encoder).release.path)


@task(name="export", cache_policy=NO_CACHE, retries=1, retry_delay_seconds=10, retry_condition_fn=may_help)
@without_secrets_in_errors
def export(workspace: str, path: str, formats: list[str], out: str, overwrite: bool) -> list[str]:
    """Write the release in these formats; returns their folders."""
    encoder = Models(last_build(Workspace.open(workspace)).settings).encoder
    made = export_tables(export_tables_of_release(path), formats, Path(out), overwrite=overwrite, encoder=encoder)
    return [str(Path(out) / one.format) for one in made]


@flow(name="release", **HOOKS)
def release(
    workspace: str,
    name: str,
    waive: list[str] | None = None,
    formats: list[Format] | None = None,
    out: str = "exports",
    overwrite: bool = False,
    limits: Limits = NO_LIMITS,
) -> str:
    """Freeze a workspace as a release and export it; returns its folder.

    Fails as `quit release create` does when a gate is neither passed nor waived. Where the name has a date and the newest release holds
    these very tables, only exports that are not there yet are made.

    Args:
        workspace: Folder of the workspace, as the machine that runs this sees it.
        name: Name of the release. strftime's %Y, %m, %d, %H, %M stand for the start of the run: nightly-%Y-%m-%d.
        waive: GATE=REASON; the reason is published with the data.
        formats: Formats to export the release in; none if not given.
        out: Folder of the exports.
        overwrite: Whether an earlier export may be replaced.
        limits: Timeout, retries, late runs, and who hears of a failure.
    """
    named = datetime.now().strftime(name)
    work = lambda: _release(workspace, named, name != named, waive or [], formats or [], out, overwrite)  # noqa: E731
    return under_limits("release", workspace, limits, work)


def _release(
    workspace: str, name: str, dated: bool, waive: list[str], formats: list[str], out: str, overwrite: bool
) -> Ended:
    logger = get_run_logger()
    opened = Workspace.open(workspace)
    with opened.lock(last_build(opened).settings.run.lock_seconds, logger.warning):  # a build under way is waited for
        newest = newest_release(opened)
        if dated and newest is not None and _same_tables(opened, newest):
            missing = [one for one in formats if not exported(newest, one, out)]
            if missing:  # an earlier run froze it and could not export it
                logger.info("the release %s is frozen, its exports %s are not there", newest.name, ", ".join(missing))
                logger.info("exported: %s", export(workspace, str(newest.path), missing, out, overwrite))
                return Ended(str(newest.path))
            nothing = f"Nothing new: the release {newest.name} holds these very tables."
            _told(workspace, newest, f"**{nothing}**\n\n")
            return Ended(str(newest.path), nothing)
        for result in check(workspace, waive):
            logger.info("gate %s: %s (%s violations)", result["gate"], result["state"], result["violations"])
    path = freeze(workspace, name, waive)  # refuses by the same gates, under the workspace's lock
    if formats:
        logger.info("exported: %s", export(workspace, path, formats, out, overwrite))
    _told(workspace, open_release(path), "")
    return Ended(path)


def _same_tables(opened: Workspace, newest: Release) -> bool:
    """Whether the release was made of the workspace's current tables, under the build's own settings."""
    pipeline = last_build(opened)
    return pipeline.up_to_date and newest.content.get("fingerprints") == opened.state


def _told(workspace: str, made: Release, heading: str) -> None:
    told = "\n".join(f"    {line}" for line in lines(made))
    create_markdown_artifact(
        heading + markdown_links(Workspace.open(workspace)) + told,
        key="quit-release",
        description="Counts, statistics, sources, readers, gates",
    )

"""The release flow: check, create, export. Safe to repeat: a release that is there already is verified and exported only if asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from prefect import flow, task
from prefect.artifacts import create_markdown_artifact
from prefect.cache_policies import NO_CACHE
from prefect.logging import get_run_logger

from flows.build import may_help
from quit.export import export as export_tables
from quit.export.release import export_tables_of_release
from quit.models.factory import Models
from quit.pipeline import last_build
from quit.release.create import create, subject_of
from quit.release.gates import check as check_gates
from quit.release.gates import parse_waivers
from quit.release.release import open_release
from quit.release.show import lines
from quit.workspace import Workspace


@task(name="check", cache_policy=NO_CACHE)
def check(workspace: str, waive: list[str]) -> list[dict[str, Any]]:
    """Return what every gate says."""
    opened = Workspace.open(workspace)
    return [one.to_dict() for one in check_gates(subject_of(opened, last_build(opened)), parse_waivers(waive))]


@task(name="create", cache_policy=NO_CACHE)
def freeze(workspace: str, name: str, waive: list[str]) -> str:
    """Freeze the current tables; returns the release's folder."""
    opened = Workspace.open(workspace)
    pipeline = last_build(opened)
    waivers = parse_waivers(waive)
    return str(create(opened, pipeline, name, waivers=waivers, encoder=Models(pipeline.settings).encoder).release.path)


@task(name="export", cache_policy=NO_CACHE, retries=1, retry_delay_seconds=10, retry_condition_fn=may_help)
def export(workspace: str, path: str, formats: list[str], out: str, overwrite: bool) -> list[str]:
    """Write the release in these formats; returns their folders."""
    encoder = Models(last_build(Workspace.open(workspace)).settings).encoder
    made = export_tables(export_tables_of_release(path), formats, Path(out), overwrite=overwrite, encoder=encoder)
    return [str(Path(out) / one.format) for one in made]


@flow(name="release")
def release(
    workspace: str,
    name: str,
    waive: list[str] | None = None,
    formats: list[str] | None = None,
    out: str = "exports",
    overwrite: bool = False,
) -> str:
    """Freeze a workspace as the release ``name`` and export it (``formats``: none if not given); returns its folder.

    ``waive``: ``GATE=REASON`` texts. Fails as ``quit release create`` does when a gate is neither passed nor waived.
    """
    logger = get_run_logger()
    for result in check(workspace, waive or []):
        logger.info("gate %s: %s (%s violations)", result["gate"], result["state"], result["violations"])
    path = freeze(workspace, name, waive or [])  # refuses by the same gates, under the workspace's lock
    if formats:
        logger.info("exported: %s", export(workspace, path, formats, out, overwrite))
    told = "\n".join(f"    {line}" for line in lines(open_release(path)))
    create_markdown_artifact(told, key="quit-release", description="Counts, statistics, sources, readers, gates")
    return path

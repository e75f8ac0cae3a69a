"""The release flow: check, create, export. Safe to repeat: tables that a release holds already are not frozen again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from prefect import flow
from prefect.artifacts import create_markdown_artifact
from prefect.logging import get_run_logger

from quit.dataset.release import FOLDER, open_release
from quit.engine.workspace import Workspace
from quit.flows.parameters import NO_LIMITS, Format, Waiver
from quit.flows.scheduling import run_with_limits
from quit.flows.tasks import as_task
from quit.library import jobs
from quit.library.jobs import JobResult
from quit.release.show import lines
from quit.settings import Limits
from quit.status.summary import markdown_links


@flow(name="release")
def release(
    workspace: str,
    name: str,
    waive: Sequence[Waiver] = (),
    formats: Sequence[Format] = (),
    out: str = "exports",
    overwrite: bool = False,
    folder: str = "",
    settings: Sequence[str] = (),
    limits: Limits = NO_LIMITS,
) -> dict[str, Any]:
    """Freeze a workspace as a release and export it; returns its ``name``, ``path``, ``content_id``, whether it is
    ``new``, and a ``note`` (what differs in a release that exists already and is kept; usually empty).

    Fails when a gate is neither passed nor waived. Where the name has a date and a release holds these very tables,
    only exports that are missing are written.

    Args:
        workspace: Folder of the workspace, as the machine that runs this sees it.
        name: Name of the release. The start of the run replaces %Y, %m, %d, %H and %M: nightly-%Y-%m-%d.
        waive: Gates that may fail, and why; the reason is published with the data.
        formats: Formats to export the release in; none if not given.
        out: Folder of the exports.
        overwrite: Whether an earlier export may be replaced.
        folder: Folder of the release; WORKSPACE/releases/NAME if not given.
        settings: release.KEY=VALUE, for the gates of this release.
        limits: Timeout and retries.
    """

    waivers = [f"{waiver.gate}={waiver.reason}" for waiver in waive]

    def work() -> JobResult:
        options: dict[str, Any] = {"overwrite": overwrite, "folder": folder, "settings": settings}
        outcome = jobs.release(workspace, name, waivers, formats, out, **options, now=datetime.now(), step=as_task)
        facts, nothing, source = outcome.result, outcome.nothing_new, Workspace.open(workspace)
        frozen = open_release(Path(facts["path"]) if folder else source.path / FOLDER / facts["name"])
        for gate in frozen.facts["gates"] if facts["new"] else ():
            get_run_logger().info("gate %s: %s (%s violations)", gate["gate"], gate["state"], gate["violations"])
        heading = f"**{nothing}**\n\n" if nothing else ""
        summary = "\n".join(f"    {line}" for line in lines(frozen))
        create_markdown_artifact(
            heading + markdown_links(source) + summary,
            key="quit-release",
            description="Counts, statistics, sources, readers, gates",
        )
        return outcome

    return run_with_limits(limits, work)

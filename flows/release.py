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
from quit.flows.links import markdown_links
from quit.flows.parameters import Format, Waiver, of_job
from quit.flows.scheduling import run_name
from quit.flows.tasks import as_task
from quit.library import jobs
from quit.library.results import JobResult, ReleaseFacts
from quit.release.show import lines


@flow(name="release", flow_run_name=run_name)
@of_job(jobs.release, waive=Sequence[Waiver], formats=Sequence[Format])
def release(arguments: dict[str, Any]) -> JobResult[ReleaseFacts]:
    """Freeze a workspace as a release and export it; returns :class:`quit.library.results.ReleaseFacts`.

    Fails when a gate is neither passed nor waived. Where the name has a date and a release holds these very tables,
    only exports that are missing are written.
    """
    waivers = [f"{waiver.gate}={waiver.reason}" for waiver in arguments.get("waive", ())]
    outcome = jobs.release(**{**arguments, "waive": waivers}, now=datetime.now(), step=as_task)
    facts, nothing, source = outcome.result, outcome.nothing_new, Workspace.open(arguments["workspace"])
    frozen = open_release(Path(facts.path) if arguments.get("folder") else source.path / FOLDER / facts.name)
    for gate in frozen.facts["gates"] if facts.new else ():
        get_run_logger().info("gate %s: %s (%s violations)", gate["gate"], gate["state"], gate["violations"])
    heading = f"**{nothing}**\n\n" if nothing else ""
    summary = "\n".join(f"    {line}" for line in lines(frozen))
    create_markdown_artifact(
        heading + markdown_links(source) + summary,
        key="quit-release",
        description="Counts, statistics, sources, readers, gates",
    )
    return outcome

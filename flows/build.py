"""The build flow: from sources to labels, one task per stage (paper, figure 2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from prefect import flow
from prefect.artifacts import create_markdown_artifact
from prefect.runtime import flow_run

from quit.common.progress import listening
from quit.engine.execution import Execution
from quit.engine.pipeline import Pipeline
from quit.flows.links import markdown_links
from quit.flows.parameters import Profile, of_job
from quit.flows.scheduling import COMMAND, run_name
from quit.flows.tasks import ProgressArtifact, as_task
from quit.library import jobs
from quit.library.jobs import JobResult
from quit.stages.order import STAGES
from quit.status.summary import markdown_summary


@flow(name="build", flow_run_name=run_name)  # its shards go to the place that `run.runner` names
@of_job(jobs.build, profile=Profile, settings=Sequence[str])
def build(arguments: dict[str, Any]) -> JobResult:
    """Build a workspace: run every stage that is not up to date; returns the run's summary (Markdown).

    One run at a time works on a workspace; one that finds everything up to date says so and ends.
    """
    keep_labels = not arguments.get("replace") and COMMAND not in flow_run.tags
    outcome = jobs.build(**arguments, keep_labels=keep_labels, carry_out=_run_stages)
    nothing = outcome.nothing_new
    heading = f"**{nothing}** No stage ran.\n\n" if nothing else ""
    summary = heading + markdown_links(outcome.result) + markdown_summary(outcome.result)
    create_markdown_artifact(summary, key="quit-build-summary", description=nothing or "What was built")
    return JobResult(summary, nothing)


def _run_stages(pipeline: Pipeline) -> None:
    """Run what is missing, stage by stage."""
    with Execution(pipeline) as run_stage, listening(ProgressArtifact(pipeline)):
        for stage in STAGES:  # from collect to roles: quit/stages/order.py has a line for each
            if pipeline.runs_of(stage):
                as_task(stage.name, run_stage, stage)

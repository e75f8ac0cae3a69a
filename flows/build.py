"""The build flow: from sources to labels, one task per stage (paper, figure 2)."""

from __future__ import annotations

from collections.abc import Sequence

from prefect import flow
from prefect.artifacts import create_markdown_artifact
from prefect.runtime import flow_run

from quit.common.progress import listening
from quit.engine.execution import Execution
from quit.engine.pipeline import Pipeline
from quit.flows.parameters import NO_LIMITS, Profile
from quit.flows.scheduling import COMMAND, run_with_limits
from quit.flows.tasks import ProgressArtifact, as_task
from quit.library import jobs
from quit.library.jobs import JobResult
from quit.settings import Limits
from quit.stages.order import STAGES
from quit.status.summary import markdown_links, markdown_summary


@flow(name="build")  # its shards go to the place that `run.runner` names
def build(
    workspace: str,
    sources: Sequence[str] = (),
    profile: Profile = "",
    settings: Sequence[str] = (),
    add: bool = False,
    replace: bool = False,
    fresh_replies: bool = False,
    limits: Limits = NO_LIMITS,
) -> str:
    """Build a workspace: run every stage that is not up to date; returns the run's summary (Markdown).

    One run at a time works on a workspace; one that finds everything up to date says so and ends.

    Args:
        workspace: Folder of the workspace, as the machine that runs this sees it.
        sources: kind:path, such as triviahg:/data/Copilot.json, or a path that ends in .jsonl, .parquet, .csv or .tsv;
            those of the last build if none is named.
        profile: Name of a profile, or the path of a TOML file; that of the last build if not given.
        settings: key=value over the profile, such as labels.max_new_tokens=16; those of the last build if not given.
        add: Whether the sources of the last build are kept before these.
        replace: Whether labels of other settings may be replaced, and questions that people reviewed may leave; else
            such a run fails and changes nothing.
        fresh_replies: Whether the kept replies of this build's language models are deleted and asked again.
        limits: Timeout and retries.
    """

    def work() -> JobResult:
        options = {"add": add, "replace": replace, "fresh_replies": fresh_replies}
        options["keep_labels"] = not replace and COMMAND not in flow_run.tags
        outcome = jobs.build(workspace, sources, profile or None, settings or None, **options, carry_out=_run_stages)
        nothing = outcome.nothing_new
        heading = f"**{nothing}** No stage ran.\n\n" if nothing else ""
        summary = heading + markdown_links(outcome.result) + markdown_summary(outcome.result)
        create_markdown_artifact(summary, key="quit-build-summary", description=nothing or "What was built")
        return JobResult(summary, nothing)

    return run_with_limits(limits, work)


def _run_stages(pipeline: Pipeline) -> None:
    """Run what is missing, stage by stage."""
    with Execution(pipeline) as run_stage, listening(ProgressArtifact(pipeline)):
        for stage in STAGES:  # from collect to roles: quit/stages/order.py has a line for each
            if pipeline.runs_of(stage):
                as_task(stage.name, run_stage, stage)

"""The build flow: from sources to labels (paper, figure 2). ``quit/stages/__init__.py`` lists the stages in order."""

from __future__ import annotations

from prefect import flow
from prefect.artifacts import create_markdown_artifact

from flows.notices import HOOKS
from flows.parameters import NO_LIMITS, Source
from flows.scheduling import FlowResult, run_held, run_with_limits
from flows.shards import StageExecutor
from quit.engine.pipeline import Pipeline
from quit.engine.planning import held_build
from quit.operations.replies import look_ahead
from quit.settings import Limits
from quit.stages import STAGES
from quit.status.summary import markdown_links, markdown_summary


@flow(name="build", **HOOKS)  # its shards go to the runner that `run.runner` names
def build(
    workspace: str,
    sources: list[Source] = [],  # noqa: B006 (Prefect's form shows it)
    profile: str = "embedded",
    overrides: list[str] | None = None,
    add: bool = False,
    replace: bool = False,
    limits: Limits = NO_LIMITS,
) -> str:
    """Build a workspace: run every stage that is not up to date; returns the run's summary (Markdown).

    One run at a time works on a workspace; one that finds everything up to date says so and ends.

    Args:
        workspace: Folder of the workspace, as the machine that runs this sees it.
        sources: kind:path, such as triviahg:/data/Copilot.json; those of the last build if none is named.
        profile: Name of a profile, or the path of a TOML file.
        overrides: key=value over the profile, such as labels.max_new_tokens=16.
        add: Whether the sources of the last build are kept before these.
        replace: Whether questions that people reviewed may leave; else such a run fails and changes nothing.
        limits: Timeout, retries, and who is notified of a failure.
    """

    def work() -> FlowResult:
        with held_build(workspace, sources, profile, overrides or [], add=add, replace=replace) as pipeline:
            return _build(pipeline)

    return run_with_limits(limits, work)


def build_held(pipeline: Pipeline) -> str:
    """Run the flow on a build that the caller has opened."""
    return run_held("build", pipeline, lambda: _build(pipeline))


def _build(pipeline: Pipeline) -> FlowResult:
    """Run what is missing, stage by stage."""
    workspace, nothing = pipeline.workspace, None
    if pipeline.up_to_date:
        nothing = f"Nothing new: sources, settings and models of {workspace} are those of its tables."
    else:
        look_ahead(pipeline)
    pipeline.begin()  # the sources may lie elsewhere now
    if nothing is None:
        with StageExecutor(pipeline) as carry_out:
            for stage in STAGES:
                carry_out(stage)
    heading = f"**{nothing}** No stage ran.\n\n" if nothing else ""
    summary = heading + markdown_links(workspace) + markdown_summary(workspace)
    create_markdown_artifact(summary, key="quit-build-summary", description=nothing or "What was built")
    return FlowResult(summary, nothing)

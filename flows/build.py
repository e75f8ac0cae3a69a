"""The build flow: from sources to labels, one line a stage (paper, figure 2)."""

from __future__ import annotations

from prefect import flow
from prefect.artifacts import create_markdown_artifact
from prefect.logging import get_run_logger

from flows.notices import HOOKS
from flows.parameters import NO_LIMITS, Source
from flows.scheduling import Ended, under_limits
from flows.shards import Shards, listening
from quit.pipeline import Pipeline, plan_build
from quit.settings import Limits
from quit.summary import markdown_links, markdown_summary


@flow(name="build", **HOOKS)  # its shards go to the runner that `run.runner` names
def build(
    workspace: str,
    sources: list[Source],
    profile: str = "embedded",
    overrides: list[str] | None = None,
    limits: Limits = NO_LIMITS,
) -> str:
    """Build a workspace: carry out every stage that is not up to date, and report; returns the run's summary (Markdown).

    One run at a time works on a workspace; one that finds everything up to date says so and ends.

    Args:
        workspace: Folder of the workspace, as the machine that runs this sees it.
        sources: kind:path, such as triviahg:/data/Copilot.json. With the files of the last run there is nothing new.
        profile: Name of a profile, or the path of a TOML file.
        overrides: key=value over the profile, such as labels.max_new_tokens=16.
        limits: Timeout, retries, late runs, and who hears of a failure.
    """
    return under_limits("build", workspace, limits, lambda: _build(workspace, sources, profile, overrides or []))


def _build(workspace: str, sources: list[str], profile: str, overrides: list[str]) -> Ended:
    pipeline = plan_build(workspace, sources, profile, overrides)
    with pipeline.workspace.lock(pipeline.settings.run.lock_seconds, _waiting):
        pipeline = pipeline.planned_again()  # reviews may have been applied while this waited
        nothing = None
        for line in pipeline.discard_damaged():
            get_run_logger().warning(line)
            listening().damaged(line)
        if pipeline.up_to_date:
            pipeline.begin(profile, overrides)  # the sources may lie elsewhere now
            nothing = f"Nothing new: sources, settings and models of {pipeline.workspace} are those of its tables."
        else:
            _stages(pipeline, profile, overrides)
    heading = f"**{nothing}** No stage ran.\n\n" if nothing else ""
    summary = heading + markdown_links(pipeline.workspace) + markdown_summary(pipeline.workspace)
    create_markdown_artifact(summary, key="quit-build-summary", description=nothing or "What was built")
    return Ended(summary, nothing)


def _stages(pipeline: Pipeline, profile: str, overrides: list[str]) -> None:
    """Carry out what is missing, one line a stage. The caller holds the workspace's lock."""
    pipeline.begin(profile, overrides)
    with Shards(pipeline, listening()) as do:
        do("collect")  # sources -> questions, hints, candidates
        do("filter")  # hints that give the answer away, and their questions, go (3.1.2)
        do("rank")  # five hints of highest convergence (3.1.2)
        do("describe")  # question type and difficulty (3.1.3)
        do("probe")  # who answers without hints? (3.1.4)
        do("split")  # train, dev, test (3.1.4)
        do("enumerate")  # 325 passages a question (3.2.1)
        for readers in pipeline.readers_at_once:
            do("read", *readers)  # three labelers, three readers (3.2.2)
        do("judge")  # GPT-Eval: a verdict on each distinct answer (3.2.2)
        do("label")  # 2 fully, 1 partially relevant (3.2.2)
        if pipeline.reviews_applied:
            do("update")  # people's verdicts over the judge's (3.2.4)


def _waiting(message: str) -> None:
    get_run_logger().warning(message)
    listening().waiting(message)

"""The build flow: from sources to labels, one task per stage (paper, figure 2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from prefect import flow
from prefect.artifacts import create_markdown_artifact, create_progress_artifact, update_progress_artifact
from prefect.runtime import flow_run

from quit.common.progress import Listener, listening
from quit.engine.pipeline import Pipeline
from quit.flows.links import markdown_links
from quit.flows.parameters import Profile, of_job
from quit.flows.scheduling import COMMAND, run_name
from quit.flows.tasks import as_task
from quit.library import jobs
from quit.library.results import JobResult
from quit.status.summary import markdown_summary


@flow(name="build", flow_run_name=run_name)  # its shards go to the place that `run.runner` names
@of_job(jobs.build, profile=Profile, settings=Sequence[str])
def build(arguments: dict[str, Any]) -> JobResult[str]:
    """Build a workspace: run every stage that is not up to date; returns the run's summary (Markdown).

    One run at a time works on a workspace; one that finds everything up to date says so and ends.
    """
    keep_labels = not arguments.get("replace") and COMMAND not in flow_run.tags
    with listening(_Progress()):
        outcome = jobs.build(**arguments, keep_labels=keep_labels, step=as_task)
    nothing = outcome.nothing_new
    heading = f"**{nothing}** No stage ran.\n\n" if nothing else ""
    summary = heading + markdown_links(outcome.result) + markdown_summary(outcome.result)
    create_markdown_artifact(summary, key="quit-build-summary", description=nothing or "What was built")
    return JobResult(summary, nothing)


class _Progress(Listener):
    """The run's artifact ``quit-build``: the finished share of a build's stage runs, in percent."""

    def build_begins(self, pipeline: Pipeline) -> None:
        """Make the artifact."""
        left = pipeline.left_to_do
        self._done = {run.key: float(run not in left) for run in pipeline.runs}
        self._percent = self._percent_done()
        self._artifact = create_progress_artifact(self._percent, key="quit-build", description="Stages of the build")

    def shards(self, number: int, run: str, done: int, count: int) -> None:
        """Update the artifact where a whole percent is reached."""
        self._done[run] = done / count
        if (percent := self._percent_done()) > self._percent:
            self._percent = percent
            update_progress_artifact(self._artifact, percent, description=run)  # type: ignore[arg-type]

    def _percent_done(self) -> float:
        return 100 * sum(self._done.values()) // len(self._done)

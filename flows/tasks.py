"""Steps and stages of a job as Prefect tasks of its run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from prefect import task
from prefect.artifacts import create_progress_artifact, update_progress_artifact
from prefect.cache_policies import NO_CACHE

from quit.common.progress import Listener
from quit.engine.pipeline import Pipeline
from quit.errors import without_secrets_in_errors

_RETRIES = {"push": 2, "pull": 2, "export": 1}
"""Steps that are tried again after a fault of the system. Shards of stages have ``run.retries``, servers' clients their
own attempts."""


def _may_help(_task: Any, _run: Any, state: Any) -> bool:
    """Whether trying again could help: yes for the system's faults."""
    return isinstance(state.result(raise_on_failure=False), OSError)


def as_task(name: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Carry out a step as a task of that name and return its result."""
    retries: dict[str, Any] = {"retries": _RETRIES.get(name, 0), "retry_delay_seconds": 10}

    @task(name=name, task_run_name=name, cache_policy=NO_CACHE, retry_condition_fn=_may_help, **retries)
    @without_secrets_in_errors
    def step() -> Any:
        return function(*arguments)

    return step()


class ProgressArtifact(Listener):
    """The run's artifact ``quit-build``: the finished share of a build's stage runs, in percent."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._runs = [run.key for run in pipeline.runs]
        self._percent = 0
        self._artifact = create_progress_artifact(0.0, key="quit-build", description="Stages of the build")

    def shards(self, number: int, run: str, done: int, count: int) -> None:
        """Update the artifact where a whole percent is reached."""
        percent = int(100 * (self._runs.index(run) + done / count) / len(self._runs))
        if percent > self._percent:
            self._percent = percent
            update_progress_artifact(self._artifact, float(percent), description=run)  # type: ignore[arg-type]

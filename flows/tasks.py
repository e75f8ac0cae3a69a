"""Steps and stages of a job as Prefect tasks of its run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, TypeVarTuple

from prefect import task
from prefect.cache_policies import NO_CACHE

from quit.common.faults import without_secrets_in_errors

_T = TypeVar("_T")
_Ts = TypeVarTuple("_Ts")


def as_task(name: str, function: Callable[[*_Ts], _T], /, *arguments: *_Ts) -> _T:
    """Carry out a step as a task of that name and return its result. A fault ends the task at once: the run is tried
    again (``limits``)."""

    @task(name=name, task_run_name=name, cache_policy=NO_CACHE)
    @without_secrets_in_errors
    def step() -> _T:
        return function(*arguments)

    return step()

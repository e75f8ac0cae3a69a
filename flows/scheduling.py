"""Timeout, retries and end of every run of a flow. Flows call :func:`run_with_limits`.

Prefect binds a flow's retries and timeout to its code. Here they are a parameter of each run, shown in a deployment's
form, and only faults that may pass are tried again. The timeout itself is Prefect's.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from prefect import flow
from prefect.logging import get_run_logger
from prefect.states import Completed
from prefect.utilities.timeout import timeout

from flows.parameters import NO_LIMITS
from quit.common.progress import Listener, listening
from quit.common.stopping import heeding_sigterm_again
from quit.engine.pipeline import Pipeline
from quit.errors import QuitError, without_secrets_in_errors
from quit.settings import Limits

NOTHING_NEW = "Nothing new"


class RunTimeout(TimeoutError):
    """A run took longer than its ``timeout_seconds``. Prefect ends it as ``TimedOut``."""


@dataclass(frozen=True)
class FlowResult:
    """``result``: what the flow returns; ``nothing_new``: why there was nothing to do, in one sentence."""

    result: Any
    nothing_new: str | None = None


class _RunLog(Listener):
    """What the job notes is in the run's log."""

    def __init__(self, logger: Any) -> None:
        self._log = logger.info

    def noted(self, text: str, loud: bool) -> None:
        self._log("%s", text)


def helps_to_retry(error: BaseException) -> bool:
    """Whether trying again could help: yes for servers and the system, no for faults in input and settings, and never
    after a timeout."""
    if isinstance(error, QuitError):
        return error.retryable
    return isinstance(error, OSError) and not isinstance(error, RunTimeout)


def run_with_limits(limits: Limits, work: Callable[[], FlowResult]) -> Any:
    """Do a flow's work under its limits and return what the flow returns: the result, or a state ``Nothing new``."""
    logger = get_run_logger()
    started = time.time()
    # Prefect's own handler of SIGTERM waits for the shards at work.
    with (
        heeding_sigterm_again(),
        timeout(seconds=limits.timeout_seconds or None, timeout_exc_type=RunTimeout),
        listening(_RunLog(logger)),
    ):
        outcome = _with_retries(limits, without_secrets_in_errors(work), logger)
    seconds = time.time() - started
    if outcome.nothing_new is None:
        logger.info("done in %.1f s", seconds)
        return outcome.result
    message = f"{outcome.nothing_new} ({seconds:.1f} s)"
    logger.info(message)
    return Completed(name=NOTHING_NEW, message=message, data=outcome.result)


@dataclass(frozen=True)
class _Here:
    """Work with what is open in this process. Prefect sends the flow along with a task: other processes get it
    empty."""

    work: Callable[[], FlowResult] | None = None

    def __reduce__(self) -> tuple[type[_Here], tuple[()]]:
        return _Here, ()


def run_held(name: str, pipeline: Pipeline, work: Callable[[], FlowResult]) -> Any:
    """Do a flow's work, without limits, for a caller that has opened the build and holds its workspace."""
    here = _Here(work)

    @flow(name=name)
    def held(workspace: str) -> Any:
        assert here.work is not None
        return run_with_limits(NO_LIMITS, here.work)

    return held(pipeline.workspace.address)


def _with_retries(limits: Limits, work: Callable[[], FlowResult], logger: Any) -> FlowResult:
    for attempt in range(limits.retries):
        try:
            return work()
        except Exception as error:
            if not helps_to_retry(error):
                raise
            pause = limits.retry_seconds * 2**attempt
            logger.warning("%s Trying again in %g s (%d of %d).", error, pause, attempt + 1, limits.retries)
            time.sleep(pause)
    return work()

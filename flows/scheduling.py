"""Timeout, retries and end of every run of a flow. Flows call :func:`run_with_limits`.

Prefect binds a flow's retries and timeout to its code. Here they are a parameter of each run, shown in a deployment's
form, and only faults that may pass are tried again. The timeout itself is Prefect's.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from datetime import datetime
from pathlib import Path
from typing import Any

from prefect.exceptions import MissingContextError
from prefect.logging import get_run_logger
from prefect.runtime import deployment, flow_run
from prefect.states import Completed
from prefect.utilities.timeout import timeout

from quit.common.faults import without_secrets_in_errors
from quit.common.logs import without_secrets_in_logs
from quit.common.progress import Listener, listening
from quit.common.retries import with_retries
from quit.errors import QuitError, Waiting
from quit.flows.liveness import alive
from quit.flows.server import server_watched
from quit.library.results import JobResult
from quit.settings import Limits
from quit.text.secrets import without_secrets
from quit.text.words import counted

NOTHING_NEW, WAITING = "Nothing new", Waiting.__name__
COMMAND = "command"
"""Tag of runs that a command has started: who typed it has named what is to be replaced."""


def run_name() -> str:
    """Return what a run is called: what it works on and when it began, such as ``starter, 2026-11-28 16:57``."""
    parameters = flow_run.parameters
    subject = parameters.get("sources") or parameters.get("release") or parameters.get("workspace") or ""
    names = subject if isinstance(subject, list | tuple) else [subject]
    return without_secrets(f"{', '.join(Path(str(name)).name for name in names)}, {datetime.now():%Y-%m-%d %H:%M}")


class RunTimeout(TimeoutError):
    """A run took longer than its ``timeout_seconds``. Prefect ends it as ``TimedOut``."""


class _RunLog(Listener):
    """Notes and finished shards are lines of the log: of the task that works, or of the run."""

    def __init__(self, logger: Any) -> None:
        self._logger = logger

    def noted(self, text: str, loud: bool) -> None:
        """Log a note."""
        try:
            logger = get_run_logger()
        except MissingContextError:  # a thread that works on a shard
            logger = self._logger
        logger.info("%s", text)

    def shards(self, number: int, run: str, done: int, count: int) -> None:
        """Log how many shards of a stage run are done."""
        self.noted(f"{run}: {done} of {counted(count, 'shard')} done", False)


def helps_to_retry(error: BaseException) -> bool:
    """Whether trying again could help: yes for servers and the system, no for faults in input and settings, and never
    after a timeout."""
    if isinstance(error, QuitError):
        return error.retryable
    return isinstance(error, OSError) and not isinstance(error, RunTimeout)


def run_with_limits(limits: Limits, work: Callable[[], JobResult[Any]]) -> Any:
    """Do a flow's work under its limits and return what the flow returns: the result, or a state ``Nothing new``
    or ``Waiting`` (for a vendor's batch)."""
    without_secrets_in_logs()  # a deployment's run has its own process
    logger = get_run_logger()
    start = time.time()
    has_deployment = bool(deployment.id)  # a deployment's run has its own process
    with (
        server_watched() if has_deployment else nullcontext(),
        alive(str(flow_run.id)) if has_deployment else nullcontext(),
        timeout(seconds=limits.timeout_seconds or None, timeout_exc_type=RunTimeout),
        listening(_RunLog(logger)),
    ):
        try:
            safe = without_secrets_in_errors(work)
            outcome = with_retries(safe, limits.retries, limits.retry_seconds, helps_to_retry, logger.warning)
        except Waiting as waiting:
            logger.info("%s", waiting)
            return Completed(name=WAITING, message=str(waiting))
    seconds = time.time() - start
    if outcome.nothing_new is None:
        logger.info("done in %.1f s", seconds)
        return outcome.result
    message = f"{outcome.nothing_new} ({seconds:.1f} s)"
    logger.info(message)
    return Completed(name=NOTHING_NEW, message=message, data=outcome.result)

"""What holds for every run of a flow: late runs, timeout, retries, how it ends, the diary. Flows call
:func:`under_limits`.

Prefect binds a flow's retries and timeout to its code; ours are a parameter of each run, which a deployment's form
shows and changes, and only faults that may pass are tried again. The timeout itself is Prefect's.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from prefect import get_client
from prefect.artifacts import create_markdown_artifact
from prefect.client.schemas.filters import FlowRunFilter
from prefect.client.schemas.objects import FlowRun, StateType
from prefect.context import FlowRunContext
from prefect.logging import get_run_logger
from prefect.states import Completed
from prefect.utilities.timeout import timeout

from quit.common.progress import Listener, listening
from quit.common.stopping import heeding_sigterm_again
from quit.engine.workspace import Workspace
from quit.errors import QuitError, without_secrets_in_errors
from quit.settings import Limits
from quit.status.history import Outcome, record_run

NOTHING_NEW = "Nothing new"
SKIPPED = "Skipped"
_SKEW_SECONDS = 5.0  # a run starts a little before its time by Prefect's own design


class RunTimeout(TimeoutError):
    """A run took longer than its ``timeout_seconds``. Prefect ends it as ``TimedOut``."""


@dataclass(frozen=True)
class Ended:
    """What a flow's work came to. ``result``: the flow's; ``nothing_new``: why there was nothing to do, in one
    sentence."""

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


def under_limits(flow: str, workspace: str | None, limits: Limits, work: Callable[[], Ended]) -> Any:
    """Do a flow's work under its limits and return what the flow returns: the result, or a named ``Completed`` state.

    A scheduled run that comes too late, or whose work another one has done meanwhile, is skipped and says so. The end
    is written down in the workspace's diary (``workspace``: None for flows that have none).
    """
    context = FlowRunContext.get()
    run = context.flow_run if context else None
    logger = get_run_logger()
    started = time.time()

    def write_down(outcome: Outcome, message: str) -> None:
        if workspace is None:
            return
        try:
            name = run.name if run else ""
            record_run(Workspace.at(workspace), flow, outcome, started, time.time(), message, name)
        except Exception as error:  # a diary that cannot be written makes no failure of a run
            logger.warning("%s is not noted in the diary: %s", workspace, error)

    why = superfluous(run, limits) if run else None
    if why is not None:
        logger.warning(why, extra={"flow": flow, "workspace": workspace, "outcome": "skipped"})
        create_markdown_artifact(f"# Skipped\n\n{why}\n", key=f"quit-{flow}", description="Why this run did nothing")
        write_down("skipped", why)
        return Completed(name=SKIPPED, message=why)
    try:
        # Prefect's own handler of SIGTERM waits for the shards at work.
        with (
            heeding_sigterm_again(),
            timeout(seconds=limits.timeout_seconds or None, timeout_exc_type=_timeout_of(limits)),
            listening(_RunLog(logger)),
        ):
            done = _with_retries(limits, without_secrets_in_errors(work), logger)
    except Exception as error:
        write_down("failed", f"{type(error).__name__}: {error}")
        raise
    seconds = time.time() - started
    if done.nothing_new is None:
        logger.info("done in %.1f s", seconds, extra={"flow": flow, "workspace": workspace, "outcome": "done"})
        write_down("done", "")
        return done.result
    message = f"{done.nothing_new} ({seconds:.1f} s)"
    logger.info(message, extra={"flow": flow, "workspace": workspace, "outcome": "nothing new"})
    write_down("nothing new", done.nothing_new)
    return Completed(name=NOTHING_NEW, message=message, data=done.result)


def _timeout_of(limits: Limits) -> type[RunTimeout]:
    class Timeout(RunTimeout):
        def __init__(self, _: str = "") -> None:
            super().__init__(
                f"stopped after {limits.timeout_seconds:g} s, its timeout; what is done stays done, the next run goes "
                "on from there"
            )

    return Timeout


def _with_retries(limits: Limits, work: Callable[[], Ended], logger: Any) -> Ended:
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


def superfluous(run: FlowRun, limits: Limits, now: datetime | None = None) -> str | None:
    """Return why a scheduled run should do nothing, in words, or None. Runs that someone asked for are never
    superfluous."""
    if not run.auto_scheduled or run.deployment_id is None or run.expected_start_time is None:
        return None
    planned = run.expected_start_time
    now = now or datetime.now(UTC)
    behind = (now - planned).total_seconds()
    if behind < -_SKEW_SECONDS:
        get_run_logger().warning(
            "This run was planned for %s, but this machine's clock says %s: one of the clocks is wrong. Continuing.",
            _clock(planned),
            _clock(now),
        )
    if limits.late_seconds and behind > limits.late_seconds:
        return (
            f"Skipped: planned for {_clock(planned)}, started {behind:.0f} s later by this machine's clock; the "
            f"schedule allows {limits.late_seconds:g} s. Nothing was changed; the next run does the work."
        )
    if limits.catch_up == "once" and (other := _did_it(run, planned)):
        return (
            f"Skipped: planned for {_clock(planned)}; the run {other.name!r} of the same schedule began later than "
            f"that, at {_clock(other.start_time or now)}, and did the same work. Nothing was changed."
        )
    return None


def _did_it(run: FlowRun, planned: datetime) -> FlowRun | None:
    """Return a finished run of the same deployment, with the same parameters, that began when this one was due already.

    It saw whatever this one was to see. (Giving way to a run that is still to come would starve a schedule whose runs
    start slowly.)
    """
    wanted = FlowRunFilter.model_validate(
        {
            "deployment_id": {"any_": [run.deployment_id]},
            "start_time": {"after_": planned},
            "state": {"type": {"any_": [StateType.COMPLETED]}},
        }
    )
    with get_client(sync_client=True) as client:
        runs = client.read_flow_runs(flow_run_filter=wanted, limit=200)
    same = (
        other
        for other in runs
        if other.id != run.id and other.state_name != SKIPPED and other.parameters == run.parameters
    )
    return next(same, None)


def _clock(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")

"""Runs whose process is gone: after a power cut, or where no server answered as it ended, nobody else says so.

A run of a deployment holds a file of this machine's cache while its process lives; the system frees it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from uuid import UUID

from filelock import FileLock, Timeout
from prefect import get_client
from prefect.client.schemas.filters import DeploymentFilter, FlowRunFilter
from prefect.client.schemas.objects import FlowRun
from prefect.exceptions import ObjectNotFound
from prefect.states import Crashed

from quit.common.cache import cache_folder

_MINUTES = 5
"""How long the process of a run may take to start."""
_STARTING = {"state": {"type": {"any_": ["PENDING"]}}}


@contextmanager
def alive(run_id: str) -> Iterator[None]:
    """Say that this process works for a run, as long as the context lasts and the process lives."""
    folder = cache_folder("runs")
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / f"{run_id}.lock"):
        try:
            yield
        finally:
            (folder / f"{run_id}.lock").unlink(missing_ok=True)


def end_dead_runs(deployment_names: Sequence[str]) -> list[str]:
    """Set the runs to Crashed whose process on this machine is gone, or never came; returns their names.

    ``deployment_names``: of those whose runs start on this machine alone.
    """
    dead: list[str] = []

    def end(run: FlowRun) -> None:
        message = "Its process ended: killed, out of memory, or the machine restarted. The next run continues its work."
        client.set_flow_run_state(run.id, Crashed(message=message), force=True)
        dead.append(run.name)

    with get_client(sync_client=True) as client:
        for path in cache_folder("runs").glob("*.lock"):
            try:
                with FileLock(path, blocking=False):
                    run = client.read_flow_run(UUID(path.stem))
                    if run.state and (run.state.is_running() or run.state.is_cancelling()):
                        end(run)
                    path.unlink()  # last: where the server is away, the next look finds it
            except (Timeout, ObjectNotFound):  # it works, or is one of another server
                continue
        latest = datetime.now(UTC) - timedelta(minutes=_MINUTES)
        pending = client.read_flow_runs(
            flow_run_filter=FlowRunFilter.model_validate(_STARTING),
            deployment_filter=DeploymentFilter.model_validate({"name": {"any_": list(deployment_names)}}),
        )
        for run in pending:
            if run.state and run.state.timestamp < latest:
                end(run)
    return dead

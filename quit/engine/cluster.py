"""Work on Ray (``run.runner = "ray..."``): a Ray of this machine that the build starts, or a cluster.

Ray carries tables between the build and its workers (:mod:`quit.engine.workers`), which share nothing else. It is
imported with the first shard.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import warnings
from collections.abc import Sequence
from concurrent.futures import Future, wait
from itertools import count
from typing import Any, cast

import pyarrow as pa

from quit.common.extras import importing
from quit.common.faults import fault_of_the_machine
from quit.common.progress import LOOK_SECONDS, note
from quit.common.ranges import Range
from quit.engine import workers
from quit.engine.pipeline import Pipeline
from quit.engine.plan import StageRun
from quit.engine.workers import LostPlace, LostWorker
from quit.errors import QuitError, ServerError, SettingsError
from quit.models.generation.base import ChatRequest, Completion
from quit.settings import JudgeSettings, ReaderSettings, RunSettings, Settings
from quit.settings.runner import ray_address
from quit.stages.stage import Context, Tables
from quit.text.secrets import shown
from quit.text.words import counted

# By name: Ray is imported only where it is used.
_WORKER_LOST = frozenset(
    "WorkerCrashedError NodeDiedError LocalRayletDiedError ObjectLostError OwnerDiedError OutOfMemoryError".split()
)
_CLUSTER_LOST = frozenset("ConnectionError CancelledError RaySystemError".split())
_PASSES = ("Starting Ray client server failed", "ZombieProcess")
"""What a head says when the process of a new session took too long, or that of the last one is just ending."""


class Cluster:
    """A Ray cluster, called from the threads of a build. ``text``: as in :func:`quit.settings.runner.ray_address`;
    ``count``: shards at a time, where the build itself starts Ray."""

    def __init__(self, text: str, settings: RunSettings, count: int) -> None:
        self.address = ray_address(text) or "local"
        self._text = text
        self._settings = settings
        self._count = count
        self._run_task: Any = None
        self._whole: dict[str, tuple[pa.Table, Any]] = {}  # with where Ray has it
        self._lock = threading.Lock()

    def run(
        self, pipeline: Pipeline, run: StageRun, shard: Range, context: Context, *chosen: Any, **tables: pa.Table
    ) -> Tables:
        """Run a stage's function in a worker. Raises what :meth:`_run` raises."""
        task = workers.stage_task(pipeline, run, context, chosen, tables)
        gpus = self._settings.gpus if {"reader", "judge"} & {*run.stage.models} else 0
        return cast(Tables, self._run(f"shard {shard.index} of {run.key}", task, context.whole, gpus))

    def answer(
        self, settings: Settings, spec: ReaderSettings | JudgeSettings, requests: Sequence[ChatRequest]
    ) -> list[Completion]:
        """Have a worker ask a language model of this program. Raises what :meth:`_run` raises."""
        task = workers.requests_task(settings, spec, requests)
        name = f"portion of {counted(len(requests), 'request')} to {spec.name}"
        return cast(list[Completion], self._run(name, task, {}, self._settings.gpus))

    def _run(self, name: str, task: workers.Task, whole: Tables, gpus: float) -> Any:
        """Return what a worker makes of a task; another one where that is lost.

        Raises ``LostPlace`` where the cluster cannot be reached, ``MissingDependency`` without its client,
        ``ServerError`` where too many workers were lost, and what the worker raised.
        """
        for losses in count(1):
            try:
                return self._result(self._submit(name, task, whole, gpus))
            except LostWorker as error:
                if losses > self._settings.lost_workers:
                    raise ServerError(
                        f"The {name} has lost its worker {losses} times; the last time: {error}. "
                        "What is done stays done. If memory is short, use fewer run.workers or more shards (--shards), "
                        "then run the same command again."
                    ) from error
                note(f"The {name} has lost its worker ({error}); another one takes it.")
        raise AssertionError("the last attempt returns or raises")

    def _submit(self, name: str, task: workers.Task, whole: Tables, gpus: float) -> Future[Any]:
        """Give a task to a worker."""
        # Ray would repeat a lost task unseen, and end a process after each task that has a GPU.
        options: dict[str, Any] = {"name": name, "max_retries": 0}
        options |= {"num_gpus": gpus, "max_calls": 0} if gpus else {}
        with self._lock:
            if self._run_task is None:
                self._run_task = self._start()
            try:
                places = [self._put(name, table) for name, table in whole.items()]
                return cast(Future[Any], self._run_task.options(**options).remote(task, *places).future())
            except Exception as error:
                raise self._fault(error) from error

    def _put(self, name: str, table: pa.Table) -> Any:
        """Return where Ray has a whole table: it travels to each machine once."""
        import ray

        if name not in self._whole or self._whole[name][0] is not table:
            self._whole[name] = table, ray.put(table)
        return self._whole[name][1]

    def _result(self, future: Future[Any]) -> Any:
        """Return a worker's result. Raises ``LostWorker``, ``LostPlace``, or what the worker raised."""
        import ray

        while not wait([future], LOOK_SECONDS).done:
            if not ray.is_initialized():  # Ray itself does not report that
                raise self._lost("it does not answer any more")
        try:
            return future.result()
        except Exception as error:
            cause = getattr(error, "cause", None) or error  # Ray wraps what a worker raised
            raise (cause if isinstance(cause, QuitError) else self._fault(cause)) from error

    def close(self) -> None:
        """Disconnect; a Ray that was started here ends."""
        if self._run_task is not None:
            import ray

            ray.shutdown()

    def _start(self) -> Any:
        """Connect and return the remote function."""
        with importing(f"run.runner = {self._text!r}"):
            logging.getLogger("ray").setLevel(logging.ERROR)
            warnings.filterwarnings("ignore", "More than 10MB of messages")  # of a session's tasks together
            import ray
        self._check_reachable()
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
        if self.address == "local":
            options |= {"address": "local", "num_cpus": self._count, "include_dashboard": False}
        else:
            options["address"] = self.address
        for last in (False, False, True):
            try:
                ray.init(**options)
                return ray.remote(workers.run_task)
            except Exception as error:
                if last or not any(text in str(error) for text in _PASSES):
                    raise self._lost(f"{type(error).__name__}: {_last_line(error)}") from error
                logging.getLogger(__name__).warning("Ray could not start a session just now; trying again.")
        raise AssertionError("the last attempt returns or raises")

    def _check_reachable(self) -> None:
        """Raise ``LostPlace`` where nothing answers at the address: the clients themselves try for minutes."""
        where, seconds = self.address.rpartition("//")[2], self._settings.cluster_seconds
        if ":" not in where:
            return
        host, _, port = where.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=seconds).close()
        except (OSError, OverflowError, UnicodeError) as error:
            raise self._lost(f"no connection within {seconds:g} s: {error}") from error
        tls = os.environ.get("RAY_USE_TLS", "0") not in ("", "0")  # the client's own handshake says no soon enough
        if not tls and not _is_grpc(where, seconds):
            raise self._lost(f"something listens there, but it is not Ray (asked for {seconds:g} s)")

    def _lost(self, why: str) -> LostPlace:
        return LostPlace(
            f"The cluster of run.runner = {self._text!r} cannot be used: {why}. What is done stays done; start it and "
            "run the same command again, or use --runner threads."
        )

    def _fault(self, error: Exception) -> Exception:
        """Return the meaning of an error: a lost worker, a lost cluster, a worker without the program, or a bug as it
        is."""
        names, text = {each.__name__ for each in type(error).__mro__}, str(error)
        if names & _WORKER_LOST:
            return LostWorker(f"{type(error).__name__}: {_last_line(error)}")
        if machine := fault_of_the_machine(error):
            return machine
        if "ImportError" in names or "ModuleNotFoundError" in text or "failed to import" in text:
            return SettingsError(
                f"A worker has no quit-builder, or another one: {_last_line(error)}. Install the same on every machine."
            )
        return self._lost(_last_line(error)) if names & _CLUSTER_LOST else error


def _is_grpc(where: str, seconds: float) -> bool:
    """Whether what listens there speaks Ray's protocol."""
    import grpc

    channel = grpc.insecure_channel(where)
    try:
        grpc.channel_ready_future(channel).result(timeout=seconds)
    except grpc.FutureTimeoutError:
        return False
    finally:
        channel.close()
    return True


def _last_line(error: Exception) -> str:
    """Return the last line of a message, which is the cause where a traceback is in it, cut to a readable length."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return shown(lines[-1] if lines and "Traceback" in str(error) else (lines or [type(error).__name__])[0])

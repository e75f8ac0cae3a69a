"""Where shards are worked on: threads or processes of this machine, or Ray (setting ``run.runner``).

The build enters the runner itself, when it has the first shard to give away, so the same flow runs in every place,
scheduled or not. Workers in other processes report to the build's Prefect server; the parts they write are seen through
the workspace's folder.
"""

from __future__ import annotations

import logging
import os
import socket
from contextlib import ExitStack
from queue import Empty, SimpleQueue
from typing import Any

from prefect import Task
from prefect.client.orchestration import get_client
from prefect.futures import PrefectFuture
from prefect.settings import PREFECT_API_URL, temporary_settings
from prefect.task_runners import ProcessPoolTaskRunner, TaskRunner, ThreadPoolTaskRunner

from quit.errors import QuitError, ServerError, SettingsError, fault_of_the_machine, importing
from quit.settings import RunSettings
from quit.settings.runner import parse_runner
from quit.text.secrets import shown

HEARTBEAT = 5.0
"""Seconds between looks at a cluster that has not said anything."""
# By name: Ray is imported only where it is used.
_WORKER_LOST = frozenset(
    "BrokenProcessPool WorkerCrashedError NodeDiedError LocalRayletDiedError ObjectLostError OwnerDiedError "
    "OutOfMemoryError".split()
)
_CLUSTER_LOST = frozenset("ConnectionError CancelledError RaySystemError".split())


_PASSES = ("Starting Ray client server failed", "ZombieProcess")
"""What a head says when the process of a new session took too long, or that of the last one is just ending."""


class LostWorker(Exception):
    """The worker of a shard is gone: killed, out of memory, its machine down. Another one can take the shard."""


class LostCluster(ServerError):
    """A cluster cannot be reached, or not any more: nothing that was given to it will come back."""


class ShardRunner(ExitStack):
    """Carries tasks out in the place that ``text`` names. Use as a context manager; nothing starts before the first
    task.

    ``text``: as in :func:`quit.settings.runner.parse_runner`. ``workers``: tasks at a time, for what is started here.
    """

    def __init__(self, text: str, settings: RunSettings, workers: int) -> None:
        super().__init__()
        self.kind, self.address = parse_runner(text)
        self._text = text
        self._seconds = settings.cluster_seconds
        self._workers = workers
        self._runner: Any = None
        self._runner_of: dict[PrefectFuture[Any], Any] = {}  # to the runner it was given to
        self._finished: SimpleQueue[PrefectFuture[Any]] = SimpleQueue()

    @property
    def is_remote(self) -> bool:
        """Whether workers are other processes, which share only files with this one."""
        return self.kind != "threads"

    def submit(self, task: Task[..., Any], parameters: dict[str, Any], gpus: float = 0) -> PrefectFuture[Any]:
        """Give a task away; its future comes out of :meth:`next_finished` when it has ended one way or another.

        Raises :class:`LostCluster` where the cluster cannot be reached, ``MissingDependency`` without its client.
        """
        if self._runner is None:
            self._runner = self._start()
        with ExitStack() as stack:
            if self.is_remote:  # a server that Prefect has started for this process is in no settings
                url = str(get_client(sync_client=True).api_url)
                stack.enter_context(temporary_settings({PREFECT_API_URL: url}))
            if self.kind == "ray":
                from prefect_ray.context import remote_options

                # Ray would repeat a lost task unseen, and end a process after each task that has a GPU.
                options = {"max_retries": 0} | ({"num_gpus": gpus, "max_calls": 0} if gpus else {})
                stack.enter_context(remote_options(**options))
            try:
                future = self._runner.submit(task, parameters)
            except Exception as error:
                raise self._fault(error, self._runner) from error
        self._runner_of[future] = self._runner
        future.add_done_callback(self._finished.put)
        return future

    def next_finished(self) -> PrefectFuture[Any]:
        """Wait until a task has ended and return its future. Raises :class:`LostCluster`."""
        while True:
            try:
                return self._finished.get(timeout=HEARTBEAT)
            except Empty:
                self.check()

    def result(self, future: PrefectFuture[Any]) -> Any:
        """Return what a finished task returned. Raises :class:`LostWorker`, or what the task raised."""
        runner = self._runner_of.pop(future)
        try:
            return future.result()
        except QuitError:
            raise
        except Exception as error:
            raise self._fault(error, runner) from error

    def check(self) -> None:
        """Raise :class:`LostCluster` where the cluster is gone: Ray itself does not report that."""
        if self._runner is not None and self.kind == "ray":
            import ray

            if not ray.is_initialized():
                raise self._cluster_error("it does not answer any more")

    def _start(self) -> Any:
        if self.kind == "threads":
            runner: TaskRunner[Any] = ThreadPoolTaskRunner(max_workers=self._workers)
        elif self.kind == "processes":
            runner = ProcessPoolTaskRunner(max_workers=self._workers)
        else:
            with importing(f"run.runner = {self._text!r}"):
                runner = self._ray()
            self._check_reachable()
            import ray

            self.callback(ray.shutdown)  # prefect-ray leaves a client's connection open
        for last in (False, False, True):
            try:
                self.enter_context(runner)
                break
            except Exception as error:
                if last or not any(text in str(error) for text in _PASSES):
                    raise self._cluster_error(f"{type(error).__name__}: {_last_line(error)}") from error
                logging.getLogger(__name__).warning("Ray could not start a session just now; trying again.")
                runner = runner.duplicate()
        return runner

    def _ray(self) -> TaskRunner[Any]:
        logging.getLogger("ray").setLevel(logging.ERROR)
        from prefect_ray.task_runners import RayTaskRunner

        quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
        if self.address == "local":
            here = {"num_cpus": self._workers, "include_dashboard": False}
            return RayTaskRunner("local", init_kwargs=quiet | here)
        if self.address == "auto":  # given as its address, it would start a cluster where there is none
            return RayTaskRunner(init_kwargs=quiet | {"address": "auto"})
        return RayTaskRunner(self.address, init_kwargs=quiet)

    def _check_reachable(self) -> None:
        """Raise :class:`LostCluster` where nothing answers at the address: the clients themselves try for minutes."""
        where = self.address.rpartition("//")[2]
        if ":" not in where:
            return
        host, _, port = where.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=self._seconds).close()
        except (OSError, OverflowError) as error:
            raise self._cluster_error(f"no connection within {self._seconds:g} s: {error}") from error
        tls = os.environ.get("RAY_USE_TLS", "0") not in ("", "0")  # the client's own handshake says no soon enough
        if not tls and not _is_grpc(where, self._seconds):
            raise self._cluster_error(f"something listens there, but it is not Ray (asked for {self._seconds:g} s)")

    def _cluster_error(self, why: str) -> LostCluster:
        return LostCluster(
            f"The cluster of run.runner = {self._text!r} cannot be used: {why}. What is done stays done; start it and "
            "run the same command again, or use --runner threads."
        )

    def _fault(self, error: Exception, runner: Any) -> Exception:
        """Return what an error of a runner means: a lost worker, a lost cluster, a worker without the program, or a bug
        as it is."""
        names = {each.__name__ for each in type(error).__mro__}
        text = str(error)
        if names & _WORKER_LOST:
            self._discard_pool(runner)
            return LostWorker(f"{type(error).__name__}: {_last_line(error)}")
        if "Failed to reach API" in text:
            return ServerError(
                f"A worker cannot reach the Prefect server ({_last_line(error)}). Start one that all machines reach "
                "(prefect server start --host 0.0.0.0) and set PREFECT_API_URL to its address before the build."
            )
        if machine := fault_of_the_machine(error):
            return machine
        if "ImportError" in names or "ModuleNotFoundError" in text or "failed to import" in text:
            return SettingsError(
                f"A worker has no quit-builder, or another one: {_last_line(error)}. Install the same on every machine."
            )
        return self._cluster_error(_last_line(error)) if names & _CLUSTER_LOST else error

    def _discard_pool(self, runner: Any) -> None:
        """Close a pool of processes that has lost one; the next task starts another."""
        if self.kind == "processes" and self._runner is runner:
            self._runner = None
            self.close()


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

"""Shards of questions as Prefect tasks: given to a runner, waited for, given again where a worker was lost."""

from __future__ import annotations

import time
from collections import Counter, deque
from contextvars import ContextVar
from itertools import zip_longest
from queue import Empty, SimpleQueue
from typing import Any

from prefect import task
from prefect.artifacts import create_progress_artifact, update_progress_artifact
from prefect.cache_policies import NO_CACHE
from prefect.futures import PrefectFuture
from prefect.logging import get_run_logger
from prefect.runtime import task_run

from flows.runners import LostCluster, LostWorker, Runner
from quit import workers
from quit.endpoints import endpoint_of
from quit.errors import ServerError, without_secrets_in_errors
from quit.pipeline import BuildSpec, Pipeline, StageRun, pipeline_of
from quit.ranges import Range

_HEARTBEAT = 5.0  # seconds between looks at a cluster that has not said anything


class Listener:
    """Watches a build: the terminal's progress bar is one. This one does nothing."""

    def progress(self, run: StageRun, done: int, count: int) -> None:
        """Told whenever a shard is done."""

    def waiting(self, message: str) -> None:
        """Told when another run holds the workspace."""

    def damaged(self, message: str) -> None:
        """Told of each file that is not what was written, and is made anew."""

    def lost(self, message: str) -> None:
        """Told when a shard has lost its worker and goes to another one."""


LISTENER: ContextVar[Listener] = ContextVar("quit_build_listener", default=Listener())  # noqa: B039 (it has no state)
"""Who watches the build that is started in this context (not a flow parameter: those are JSON, for schedules and forms)."""


def listening() -> Listener:
    """Return who watches the build of this context. (A function, for a worker gets the flow by value, and a context variable has none.)"""
    return LISTENER.get()


def may_help(task: Any, run: Any, state: Any) -> bool:
    """Whether trying again could help: yes for the system's faults. Servers' clients have tried again."""
    try:
        state.result()
    except OSError:
        return True
    except Exception:
        return False
    return False


def shard_name() -> str:
    """Return what the task run of a shard is called: ``read:minilm-late-3``."""
    given = task_run.parameters
    reader = f":{given['reader']}" if given["reader"] else ""
    return f"{given['stage']}{reader}-{given['index']}"


@task(name="shard", task_run_name=shard_name, cache_policy=NO_CACHE, retry_condition_fn=may_help)
@without_secrets_in_errors
def work_on(
    spec: BuildSpec,
    stage: str,
    reader: str | None,
    index: int,
    count: int,
    first: str | None,
    end: str | None,
    told: workers.Told | None = None,
) -> workers.Report | int:
    """Carry out one shard of one stage; returns the rows of its first table. ``told``: for a worker in another process, which reports."""
    shard = Range(index, count, first, end)
    started = time.monotonic()
    if told is None:
        pipeline = pipeline_of(spec)
        made: workers.Report | int = pipeline.work(pipeline.run(stage, reader), shard)
        rows = made
    else:
        made = workers.work_shard(spec, stage, reader, shard, told)
        pipeline = pipeline_of(spec, processes=told.processes)
        rows = made.rows or 0
    _log(pipeline, pipeline.run(stage, reader), shard, rows, time.monotonic() - started)
    return made


def _log(pipeline: Pipeline, run: StageRun, shard: Range, rows: int, took: float) -> None:
    """Say what a shard came to, in words and as fields of a structured record."""
    endpoint = endpoint_of(pipeline.settings, run.stage.name, run.reader)
    fields = {
        "stage": run.key,
        "shard": shard.index,
        "shards": shard.count,
        "first_question": shard.first,
        "end_question": shard.end,
        "endpoint": endpoint,
        "workspace": pipeline.workspace.address,
        "rows": rows,
        "seconds": round(took, 3),
    }
    bounds = (shard.first, shard.end)
    where = (
        "questions" if bounds == (None, None) else f"questions {shard.first or '(first)'} to {shard.end or '(last)'}"
    )
    said = (run.key, shard.index + 1, shard.count, where, endpoint, rows, took)
    get_run_logger().info("%s: shard %d of %d, %s, %s: %d rows in %.1f s", *said, extra=fields)


class Shards:
    """Carries out stages in the order they are called, skipping what is done. Use as a context manager."""

    def __init__(self, pipeline: Pipeline, listener: Listener) -> None:
        self.pipeline = pipeline
        self._spec = pipeline.spec()
        self._progress, self._say_lost = listener.progress, listener.lost
        self._logger = get_run_logger()
        self._artifact = create_progress_artifact(0.0, key="quit-build", description="Stages of the build")
        settings = pipeline.settings.run
        self._task = work_on.with_options(
            retries=settings.retries,
            retry_delay_seconds=[settings.retry_seconds * 2**attempt for attempt in range(settings.retries)],
        )
        together = max(len(readers) for readers in pipeline.readers_at_once)
        self._runner = Runner(settings.runner, settings, pipeline.workers * together)

    def __enter__(self) -> Shards:
        self._runner.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._runner.__exit__(*error)

    def __call__(self, stage: str, *readers: str) -> None:
        """Run what is missing of a stage, then mark it as complete. Several readers' runs of it go on side by side."""
        runs = [self.pipeline.run(stage, reader) for reader in readers or (None,)]
        waiting = self._waiting(runs)
        before = self.pipeline.models.meter.snapshot()
        try:
            self._carry_out(waiting)
        finally:
            self.pipeline.record_usage(stage if len(runs) > 1 else runs[0].key, before)
        for run in runs:
            self.pipeline.finish(run)
            place = self.pipeline.runs.index(run) + 1
            update_progress_artifact(self._artifact, 100.0 * place / len(self.pipeline.runs), description=run.key)

    def _waiting(self, runs: list[StageRun]) -> deque[tuple[StageRun, Range]]:
        """Return the shards to do; several runs take turns."""
        pending = [self.pipeline.pending(run, publish=True) for run in runs]
        for run, shards in zip(runs, pending, strict=True):
            if shards:
                self._logger.info("%s: %d of %d shards to do", run.key, len(shards), shards[0].count)
                self._progress(run, shards[0].count - len(shards), shards[0].count)
            else:
                self._logger.info("%s: up to date", run.key)
        turns = zip_longest(*([(run, shard) for shard in shards] for run, shards in zip(runs, pending, strict=True)))
        return deque(one for turn in turns for one in turn if one is not None)

    def _carry_out(self, waiting: deque[tuple[StageRun, Range]]) -> None:
        left = Counter(run.key for run, _ in waiting)
        lost: Counter[tuple[str, int]] = Counter()
        working: dict[PrefectFuture[Any], tuple[StageRun, Range]] = {}
        finished: SimpleQueue[PrefectFuture[Any]] = SimpleQueue()
        try:
            while waiting or working:
                while (given := self._next(waiting, working)) is not None:
                    working[self._give(*given, finished)] = given
                future = self._wait_for(finished)
                run, shard = working.pop(future)
                try:
                    self._heed(run, shard, self._runner.result(future))
                except LostWorker as error:
                    self._again(run, shard, lost, error)
                    waiting.appendleft((run, shard))
                    continue
                left[run.key] -= 1
                self._progress(run, shard.count - left[run.key], shard.count)
        except LostCluster:
            raise
        except Exception:  # a fault, or the run's timeout
            # What others have in flight was paid for, and nobody may have the workspace while they still write to it.
            while working:
                working.pop(self._wait_for(finished))
            raise

    def _next(
        self, waiting: deque[tuple[StageRun, Range]], working: dict[PrefectFuture[Any], tuple[StageRun, Range]]
    ) -> tuple[StageRun, Range] | None:
        """Take the next shard of a run that has fewer at work than it may; None where there is none."""
        at_work = Counter(run.key for run, _ in working.values())
        for place, (run, _) in enumerate(waiting):
            if at_work[run.key] < self.pipeline.workers:
                given = waiting[place]
                del waiting[place]
                return given
        return None

    def _give(self, run: StageRun, shard: Range, finished: SimpleQueue[PrefectFuture[Any]]) -> PrefectFuture[Any]:
        parameters = {
            "spec": self._spec,
            "stage": run.stage.name,
            "reader": run.reader,
            "index": shard.index,
            "count": shard.count,
            "first": shard.first,
            "end": shard.end,
            "told": workers.told(self.pipeline, run, self.pipeline.workers) if self._runner.apart else None,
        }
        gpus = self.pipeline.settings.run.gpus if run.stage.name in ("read", "judge", "probe") else 0
        return self._runner.submit(self._task, parameters, finished.put, gpus)

    def _wait_for(self, finished: SimpleQueue[PrefectFuture[Any]]) -> PrefectFuture[Any]:
        while True:
            try:
                return finished.get(timeout=_HEARTBEAT)
            except Empty:
                self._runner.check()

    def _heed(self, run: StageRun, shard: Range, made: workers.Report | int) -> None:
        """Take a worker's report: its parts must be seen here, what it asked is counted here."""
        if isinstance(made, workers.Report):
            workers.seen(self.pipeline, run, shard, made.host)
            self.pipeline.models.meter.merge(made.usage, self.pipeline.workers)

    def _again(self, run: StageRun, shard: Range, lost: Counter[tuple[str, int]], error: LostWorker) -> None:
        """Note a lost worker; raises :class:`ServerError` where this shard has lost too many."""
        lost[run.key, shard.index] += 1
        most = self.pipeline.settings.run.lost_workers
        if lost[run.key, shard.index] > most:
            raise ServerError(
                f"Part {shard.index} of {run.key} has lost its worker {most + 1} times; the last time: {error}. What is done stays done. "
                "If memory is short, use fewer run.workers or more shards (--shards), then run the same command again."
            ) from error
        message = f"{run.key}: part {shard.index} has lost its worker ({error}); another one takes it."
        self._logger.warning(message)
        self._say_lost(message)

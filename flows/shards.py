"""Carry out stages: submit shards of questions to a runner as Prefect tasks, wait, and resubmit shards of lost workers.

Prefect's own retries repeat a shard after a fault of the system. A lost worker is replaced here, because the same
bytes need three conditions: the worker is gone, its half-written files are ignored, and the build still holds
the workspace.
"""

from __future__ import annotations

import time
from asyncio import CancelledError
from collections import Counter, deque
from contextlib import ExitStack, suppress
from typing import Any

from prefect import task
from prefect.artifacts import create_progress_artifact, update_progress_artifact
from prefect.cache_policies import NO_CACHE
from prefect.futures import PrefectFuture
from prefect.logging import get_run_logger

from flows.runners import HEARTBEAT, LostCluster, LostWorker, ShardRunner
from quit.common.progress import note, shards_done
from quit.common.ranges import Range
from quit.engine import workers
from quit.engine.pipeline import Pipeline
from quit.engine.plan import StageRun
from quit.errors import ServerError, without_secrets_in_errors
from quit.stages.stage import Stage

Shard = tuple[StageRun, Range]


def may_help(task: Any, run: Any, state: Any) -> bool:
    """Whether trying again could help: yes for the system's faults. Servers' clients have tried again."""
    return isinstance(state.result(raise_on_failure=False), OSError)


@task(name="shard", task_run_name="{run}-{shard.index}", cache_policy=NO_CACHE, retry_condition_fn=may_help)
@without_secrets_in_errors
def work_on(build: Pipeline | workers.RemoteBuild, run: str, shard: Range) -> workers.ShardResult | int:
    """Carry out one shard of a stage run; returns the rows of its first table.

    ``build``: the plan, for a worker in this process; an order, for one in another process, which returns a report.
    """
    started = time.monotonic()
    result: workers.ShardResult | int
    if isinstance(build, Pipeline):
        result = rows = build.work_on(build.stage_run(run), shard)
    else:
        result = workers.work_on(build, run, shard)
        rows = result.rows or 0
    ends = f" {shard.first or '(first)'} to {shard.end or '(last)'}" if shard.first or shard.end else ""
    values = (run, shard.index + 1, shard.count, ends, rows, time.monotonic() - started)
    get_run_logger().info("%s: shard %d of %d, questions%s: %d rows in %.1f s", *values)
    return result


class StageExecutor(ExitStack):
    """Carries out stages in the order they are called, skipping what is done. Use as a context manager.

    ``runner``: where, instead of the place that the settings name.
    """

    def __init__(self, pipeline: Pipeline, runner: str | None = None) -> None:
        super().__init__()
        self.pipeline = pipeline
        self._logger = get_run_logger()
        self._artifact = create_progress_artifact(0.0, key="quit-build", description="Stages of the build")
        settings = pipeline.settings.run
        self._task = work_on.with_options(
            retries=settings.retries,
            retry_delay_seconds=[settings.retry_seconds * 2**attempt for attempt in range(settings.retries)],
        )
        together = len(pipeline.settings.readers) if settings.readers_together else 1
        self._runner = self.enter_context(ShardRunner(runner or settings.runner, settings, pipeline.workers * together))

    def __call__(self, stage: Stage) -> None:
        """Run what is missing of a stage, then mark it as complete. A stage that is not part of this build is
        skipped."""
        pipeline, runner = self.pipeline, self._runner
        gpus = pipeline.settings.run.gpus if {"reader", "judge"} & {*stage.models} else 0
        for runs in pipeline.runs_of(stage):
            pipeline.check_ready(runs[0])
            before = pipeline.models.meter.snapshot()
            queue, in_flight = self._waiting(runs), dict[PrefectFuture[Any], Shard]()
            remaining, losses = Counter(run.key for run, _ in queue), Counter[Shard]()
            try:
                while queue or in_flight:
                    while (item := self._next(queue, in_flight)) is not None:
                        run, shard = item
                        build = workers.remote_build(pipeline, run, pipeline.workers) if runner.is_remote else pipeline
                        future = runner.submit(self._task, {"build": build, "run": run.key, "shard": shard}, gpus)
                        in_flight[future] = item
                    future = runner.next_finished()
                    run, shard = in_flight.pop(future)
                    try:
                        self._accept(run, shard, runner.result(future))
                    except LostWorker as error:
                        self._again(run, shard, losses, error)
                        queue.appendleft((run, shard))
                        continue
                    remaining[run.key] -= 1
                    shards_done(stage.number, run.key, shard.count - remaining[run.key], shard.count)
            except LostCluster:
                raise
            except (Exception, CancelledError):  # a fault, or the run's timeout, which Prefect raises as a cancellation
                self._drain(in_flight)
                raise
            finally:
                pipeline.record_usage(runs[0].key if len(runs) == 1 else stage.name, before)
            for run in runs:
                pipeline.finish(run)
                percent = 100.0 * (pipeline.runs.index(run) + 1) / len(pipeline.runs)
                update_progress_artifact(self._artifact, percent, description=run.key)  # type: ignore[arg-type]

    def _waiting(self, runs: list[StageRun]) -> deque[Shard]:
        """Return the shards to do; several runs take turns."""
        queue: list[Shard] = []
        for run in runs:
            shards = self.pipeline.pending(run, publish=True)
            queue += [(run, shard) for shard in shards]
            if shards:
                self._logger.info("%s: %d of %d shards to do", run.key, len(shards), shards[0].count)
                shards_done(run.stage.number, run.key, shards[0].count - len(shards), shards[0].count)
            else:
                self._logger.info("%s: up to date", run.key)
        return deque(sorted(queue, key=lambda item: item[1].index))

    def _drain(self, in_flight: dict[PrefectFuture[Any], Shard]) -> None:
        """Wait for the shards in flight: they are paid for, and no other run may hold the workspace meanwhile."""
        for future, (run, shard) in in_flight.items():
            while not future.state.is_final():
                self._runner.check()
                with suppress(TimeoutError):
                    future.wait(timeout=HEARTBEAT)
            with suppress(Exception):  # the first fault is the one to report
                self._accept(run, shard, self._runner.result(future))

    def _next(self, queue: deque[Shard], in_flight: dict[PrefectFuture[Any], Shard]) -> Shard | None:
        """Take the next shard of a run that has fewer at work than it may; None where there is none."""
        at_work = Counter(run for run, _ in in_flight.values())
        shard = next((shard for shard in queue if at_work[shard[0]] < self.pipeline.workers), None)
        if shard is not None:
            queue.remove(shard)
        return shard

    def _accept(self, run: StageRun, shard: Range, result: workers.ShardResult | int) -> None:
        """Accept a worker's report: its parts must be visible here, what it asked is counted here."""
        if isinstance(result, workers.ShardResult):
            workers.wait_for_parts(self.pipeline, run, shard, result.host)
            self.pipeline.models.meter.merge(result.usage, self.pipeline.workers)

    def _again(self, run: StageRun, shard: Range, losses: Counter[Shard], error: LostWorker) -> None:
        """Note a lost worker; raises :class:`ServerError` where this shard has lost too many."""
        losses[run, shard] += 1
        most = self.pipeline.settings.run.lost_workers
        if losses[run, shard] > most:
            raise ServerError(
                f"Part {shard.index} of {run.key} has lost its worker {most + 1} times; the last time: {error}. What "
                "is done stays done. If memory is short, use fewer run.workers or more shards (--shards), then run "
                "the same command again."
            ) from error
        note(f"{run.key}: part {shard.index} has lost its worker ({error}); another one takes it.")

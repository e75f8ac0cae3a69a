"""Carry out a build's plan: give each missing shard to a thread, wait for it, and finish the stage runs in order.

A thread reads a shard's inputs and writes its tables, and alone asks servers. What only needs processors or GPUs it has
done on Ray where ``run.runner`` says so (:mod:`quit.engine.cluster`). A shard that meets a fault of the system is tried
again (``run.retries``).
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from threadpoolctl import threadpool_limits

from quit.common.faults import without_secrets_in_errors
from quit.common.progress import LOOK_SECONDS, build_begins, note, shards_done
from quit.common.ranges import Range
from quit.common.tasks import Step, directly
from quit.engine.pipeline import Pipeline
from quit.engine.plan import StageRun
from quit.errors import Stopped, Waiting
from quit.settings.runner import ray_address
from quit.stages.order import STAGES
from quit.stages.stage import Stage, Tables
from quit.text.secrets import without_secrets
from quit.text.words import counted

if TYPE_CHECKING:
    from quit.engine.cluster import Cluster

Shard = tuple[StageRun, Range]

USAGE_SECONDS = 60.0
"""Seconds between records of the use of language models. A kill loses what was used since the last; the replies are
kept."""


class Threads(ThreadPoolExecutor):
    """Threads of this process. BLAS starts no threads in them until the last ones of the process are closed."""

    _lock = threading.Lock()
    _users = 0
    _limits: threadpool_limits

    def __init__(self, count: int) -> None:
        super().__init__(count, "shard")
        with Threads._lock:
            if not Threads._users:
                Threads._limits = threadpool_limits(1, "blas")
            Threads._users += 1

    def close(self) -> None:
        """Start no further shard; those at work are not waited for."""
        self.shutdown(wait=False, cancel_futures=True)
        with Threads._lock:
            Threads._users -= 1
            if not Threads._users:
                Threads._limits.restore_original_limits()


def execute(pipeline: Pipeline, step: Step = directly) -> None:
    """Run every stage that is not up to date, in the order of ``STAGES``: each a ``step``."""
    with execution(pipeline) as run_stage:
        for stage in STAGES:
            step(stage.name, run_stage, stage)


@contextmanager
def execution(pipeline: Pipeline, runner: str | None = None) -> Iterator[Execution]:
    """Yield an executor for the stages of a build: threads, and Ray where the runner is Ray.

    ``runner``: instead of the one that the settings name.
    """
    settings = pipeline.settings.run
    runner = runner or settings.runner
    count = settings.workers * (len(pipeline.settings.readers) if settings.parallel_readers else 1)
    build_begins(pipeline)
    with ExitStack() as stack:
        threads, cluster = stack.enter_context(closing(Threads(count))), None
        if ray_address(runner) is not None:
            from quit.engine.cluster import Cluster

            cluster = stack.enter_context(closing(Cluster(runner, settings, count)))
            pipeline.models.elsewhere = lambda spec: partial(cluster.answer, pipeline.settings, spec)
            stack.callback(setattr, pipeline.models, "elsewhere", None)
        yield Execution(pipeline, threads, cluster)


class Execution:
    """Carries out stages in the order in which they are called."""

    def __init__(self, pipeline: Pipeline, threads: Threads, cluster: Cluster | None) -> None:
        self.pipeline = pipeline
        self._threads, self._cluster = threads, cluster
        self._recorded, self._record_time = pipeline.models.meter.snapshot(), time.monotonic()
        self._run_name = ""

    @without_secrets_in_errors
    def __call__(self, stage: Stage) -> None:
        """Run what is missing of a stage and mark it as complete; nothing where it is no part of this build."""
        waits: list[Waiting] = []
        for runs in self.pipeline.runs_of(stage):
            if waits and self.pipeline.missing_inputs(runs[0]):
                continue  # it needs what is waited for
            self.pipeline.check_ready(runs[0])
            self._run_name = runs[0].key if len(runs) == 1 else stage.name
            try:
                self._work_on(self._waiting(runs))
            except Waiting as waiting:
                waits.append(waiting)
                continue
            finally:
                self._record_usage()
            for run in runs:
                self.pipeline.finish(run)
        if waits:
            raise Waiting(" ".join(map(str, waits)))

    def _work_on(self, queue: deque[Shard]) -> None:
        """Have all shards of a queue worked on. After a fault or an interrupt, wait for the shards at work: they are
        paid for, and no other run may hold the workspace meanwhile."""
        remaining = Counter(run for run, _ in queue)
        at_work: dict[Future[Any], Shard] = {}
        waits: list[Waiting] = []
        try:
            while queue or at_work:
                while (item := self._next(queue, at_work)) is not None:
                    at_work[self._threads.submit(self.pipeline.run_shard, *item, self._on_ray(*item))] = item
                for future in self._finished(at_work):
                    run, shard = at_work.pop(future)
                    try:
                        future.result()
                    except Waiting as waiting:  # the other shards submit what they need
                        waits.append(waiting)
                        continue
                    remaining[run] -= 1
                    shards_done(run.stage.number, run.key, shard.count - remaining[run], shard.count)
        except BaseException as fault:
            self._drain(at_work, fault)
            raise
        if waits:
            raise waits[0] if len(waits) == 1 else Waiting(f"{waits[0]} ({len(waits):,} shards wait.)")

    def _drain(self, at_work: dict[Future[Any], Shard], fault: BaseException) -> None:
        """Wait for the shards at work; other faults than the first are noted. After an interrupt they begin no further
        request to a server or an own model, and transformers no further token; on Ray shards and portions of
        requests are worked on to their end. An interrupt while they are waited for ends the wait."""
        ledger = self.pipeline.models.ledger
        if not isinstance(fault, Exception):
            ledger.stop()
        try:
            if wait(at_work, 1).not_done:
                note(f"Waiting for {counted(len(at_work), 'shard')} at work; what is done stays done.")
            while at_work:
                for future in self._finished(at_work):
                    run, shard = at_work.pop(future)
                    try:
                        future.result()
                    except Stopped:
                        continue
                    except Exception as error:
                        if str(error) != str(fault):
                            note(f"{run.key}, part {shard.index}: {without_secrets(str(error))}")
        except BaseException as interrupt:
            if not isinstance(interrupt, Exception):
                ledger.stop()
            raise

    def _waiting(self, runs: list[StageRun]) -> deque[Shard]:
        """Return the shards to do; several runs take turns."""
        queue: list[Shard] = []
        for run in runs:
            self.pipeline.discard_stale(run)
            shards = self.pipeline.pending(run)
            queue += [(run, shard) for shard in shards]
            if shards:
                shards_done(run.stage.number, run.key, shards[0].count - len(shards), shards[0].count)
        return deque(sorted(queue, key=lambda item: item[1].index))

    def _next(self, queue: deque[Shard], at_work: dict[Future[Any], Shard]) -> Shard | None:
        """Take the next shard of a run that has fewer at work than it may; None where there is none."""
        busy, workers = Counter(run for run, _ in at_work.values()), self.pipeline.settings.run.workers
        item = next((item for item in queue if busy[item[0]] < workers), None)
        if item is not None:
            queue.remove(item)
        return item

    def _on_ray(self, run: StageRun, shard: Range) -> Callable[..., Tables] | None:
        """Return what runs a stage's function on Ray; None where it runs in the build."""
        from quit.engine.workers import may_work_on

        if self._cluster is None or not may_work_on(run, self.pipeline.settings):
            return None
        return partial(self._cluster.run, self.pipeline, run, shard)

    def _finished(self, at_work: dict[Future[Any], Shard]) -> set[Future[Any]]:
        """Wait until some shards have ended, one way or another, and return their futures."""
        while True:
            if time.monotonic() - self._record_time >= USAGE_SECONDS:
                self._record_usage()
            if finished := wait(at_work, LOOK_SECONDS, FIRST_COMPLETED).done:
                return finished

    def _record_usage(self) -> None:
        """Log the use of language models since the last time."""
        self._recorded = self.pipeline.record_usage(self._run_name, self._recorded)
        self._record_time = time.monotonic()

"""Carry out a build's plan: give each missing shard to a place, wait for it, and finish the stage runs in order.

A place (:class:`Place`) works on shards: threads of this process (:class:`Threads`), or a Ray cluster
(:mod:`quit.engine.cluster`). The loop is the same for all places, and so are the bytes. A shard that meets a fault of
the system is tried again where it is (``run.retries``). A shard of a lost worker goes to another worker.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from typing import Any, Protocol

from threadpoolctl import threadpool_limits

from quit.common.progress import build_begins, note, shards_done
from quit.common.ranges import Range
from quit.engine import workers
from quit.engine.pipeline import Pipeline
from quit.engine.plan import StageRun
from quit.errors import ServerError, Stopped, Waiting, without_secrets_in_errors
from quit.settings.runner import parse_runner
from quit.stages.order import STAGES
from quit.stages.stage import Stage
from quit.text.secrets import without_secrets
from quit.text.words import counted

Shard = tuple[StageRun, Range]

HEARTBEAT = 5.0
"""Seconds between looks at a place that has not said anything."""
USAGE_SECONDS = 60.0
"""Seconds of which a kill forgets the use of language models; their replies are kept."""


class Place(Protocol):
    """Where shards are worked on. Nothing starts before the first shard."""

    def submit(self, pipeline: Pipeline, run: StageRun, shard: Range) -> Future[workers.ShardResult | None]:
        """Give a shard away. A worker that shares only files with this process reports its result.

        Raises ``LostPlace`` where the place cannot be reached, ``MissingDependency`` without its client.
        """
        ...

    def result(self, future: Future[workers.ShardResult | None]) -> workers.ShardResult | None:
        """Return the result of a finished shard. Raises ``LostWorker``, ``LostPlace``, or the stage's
        error."""
        ...

    def check(self) -> None:
        """Raise ``LostPlace`` where the place is gone."""
        ...

    def close(self) -> None:
        """Leave the place without waiting for shards at work."""
        ...


class Threads:
    """Threads of this process: all share its plan and its models. BLAS starts no threads in them until the last place
    of the process is closed."""

    _lock = threading.Lock()
    _places = 0
    _limits: threadpool_limits

    def __init__(self, count: int) -> None:
        self._pool = ThreadPoolExecutor(count, "shard")
        with Threads._lock:
            if not Threads._places:
                Threads._limits = threadpool_limits(1, "blas")
            Threads._places += 1

    def submit(self, pipeline: Pipeline, run: StageRun, shard: Range) -> Future[workers.ShardResult | None]:
        """Queue a shard."""
        return self._pool.submit(pipeline.work_on, run, shard)

    def result(self, future: Future[workers.ShardResult | None]) -> workers.ShardResult | None:
        """Return nothing, or raise the stage's error."""
        return future.result()

    def check(self) -> None:
        """Do nothing: this process is there."""

    def close(self) -> None:
        """Start no further shard."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        with Threads._lock:
            Threads._places -= 1
            if not Threads._places:
                Threads._limits.restore_original_limits()


def place_of(text: str, pipeline: Pipeline) -> Place:
    """Return the place that ``run.runner`` names (:func:`quit.settings.runner.parse_runner`)."""
    settings = pipeline.settings.run
    count = pipeline.workers * (len(pipeline.settings.readers) if settings.parallel_readers else 1)
    if parse_runner(text)[0] == "threads":
        return Threads(count)
    from quit.engine.cluster import Cluster

    return Cluster(text, settings, count)


def execute(pipeline: Pipeline) -> None:
    """Run every stage that is not up to date, in the order of ``STAGES``."""
    with Execution(pipeline) as carry_out:
        for stage in STAGES:
            carry_out(stage)


class Execution(ExitStack):
    """Carries out stages in the order in which they are called. Use as a context manager.

    ``runner``: where, instead of the place that the settings name.
    """

    def __init__(self, pipeline: Pipeline, runner: str | None = None) -> None:
        super().__init__()
        self.pipeline = pipeline
        self._place = place_of(runner or pipeline.settings.run.runner, pipeline)
        self.callback(self._place.close)
        self._recorded, self._record_time = pipeline.models.meter.snapshot(), time.monotonic()
        self._run_name = ""
        build_begins(pipeline)

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
        remaining, losses = Counter(run for run, _ in queue), Counter[Shard]()
        at_work: dict[Future[Any], Shard] = {}
        waits: list[Waiting] = []
        try:
            while queue or at_work:
                while (item := self._next(queue, at_work)) is not None:
                    at_work[self._place.submit(self.pipeline, *item)] = item
                for future in self._finished(at_work):
                    run, shard = item = at_work.pop(future)
                    try:
                        self._accept(run, shard, self._place.result(future))
                    except workers.LostWorker as error:
                        losses[item] += 1
                        self._check_losses(item, losses[item], error)
                        queue.appendleft(item)
                        continue
                    except Waiting as waiting:  # the other shards submit what they need
                        waits.append(waiting)
                        continue
                    remaining[run] -= 1
                    shards_done(run.stage.number, run.key, shard.count - remaining[run], shard.count)
        except workers.LostPlace:
            raise
        except BaseException as fault:
            self._drain(at_work, fault)
            raise
        if waits:
            raise waits[0] if len(waits) == 1 else Waiting(f"{waits[0]} ({len(waits):,} shards wait.)")

    def _drain(self, at_work: dict[Future[Any], Shard], fault: BaseException) -> None:
        """Wait for the shards at work; other faults than the first are noted. After an interrupt they begin no further
        request to a server or an own model, and transformers no further token; those of Ray have their own ledgers and
        work to their end. An interrupt while they are waited for ends the wait."""
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
                        self._accept(run, shard, self._place.result(future))
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
        busy = Counter(run for run, _ in at_work.values())
        item = next((item for item in queue if busy[item[0]] < self.pipeline.workers), None)
        if item is not None:
            queue.remove(item)
        return item

    def _finished(self, at_work: dict[Future[Any], Shard]) -> set[Future[Any]]:
        """Wait until some shards have ended, one way or another, and return their futures. Raises
        ``LostPlace``."""
        while True:
            if time.monotonic() - self._record_time >= USAGE_SECONDS:
                self._record_usage()
            if finished := wait(at_work, HEARTBEAT, FIRST_COMPLETED).done:
                return finished
            self._place.check()

    def _record_usage(self) -> None:
        """Log the use of language models since the last time."""
        self._recorded = self.pipeline.record_usage(self._run_name, self._recorded)
        self._record_time = time.monotonic()

    def _accept(self, run: StageRun, shard: Range, result: workers.ShardResult | None) -> None:
        """Accept the report of a worker elsewhere: its parts must be visible here, its usage is counted here."""
        if result is not None:
            workers.wait_for_parts(self.pipeline, run, shard, result.host)
            self.pipeline.models.meter.merge(result.usage, self.pipeline.workers)

    def _check_losses(self, item: Shard, losses: int, error: workers.LostWorker) -> None:
        """Note a lost worker; raises ``ServerError`` where this shard has lost too many."""
        run, shard = item
        if losses > self.pipeline.settings.run.lost_workers:
            raise ServerError(
                f"Part {shard.index} of {run.key} has lost its worker {losses} times; the last time: {error}. What "
                "is done stays done. If memory is short, use fewer run.workers or more shards (--shards), then run "
                "the same command again."
            ) from error
        note(f"{run.key}: part {shard.index} has lost its worker ({error}); another one takes it.")

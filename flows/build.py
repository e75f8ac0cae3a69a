"""The build flow: from sources to labels, one line a stage (paper, figure 2). Shards of questions are the tasks."""

from __future__ import annotations

from collections import Counter, deque
from contextvars import ContextVar
from itertools import zip_longest
from queue import Empty, SimpleQueue
from typing import Any

from prefect import flow, task
from prefect.artifacts import create_markdown_artifact, create_progress_artifact, update_progress_artifact
from prefect.cache_policies import NO_CACHE
from prefect.futures import PrefectFuture
from prefect.logging import get_run_logger

from flows.runners import LostCluster, LostWorker, Runner
from quit.errors import QuitError, ServerError
from quit.pipeline import BuildSpec, Pipeline, StageRun, pipeline_of, plan_build
from quit.summary import markdown_summary
from quit.workers import Report, Told, carry_out, seen, told
from quit.workspace import Range

_HEARTBEAT = 5.0  # seconds between looks at a cluster that has not said anything


class Listener:
    """Watches a build: the terminal's progress bar is one. This one does nothing."""

    def progress(self, run: StageRun, done: int, count: int) -> None:
        """Told whenever a shard is done."""

    def waiting(self, message: str) -> None:
        """Told when another run holds the workspace."""

    def lost(self, message: str) -> None:
        """Told when a shard has lost its worker and goes to another one."""


LISTENER: ContextVar[Listener] = ContextVar("quit_build_listener", default=Listener())  # noqa: B039 (it has no state)
"""Who watches the build that is started in this context (not a flow parameter: those are JSON, for schedules and forms)."""


def listening() -> Listener:
    """Return who watches the build of this context. (A function, for a worker gets the flow by value, and a context variable has none.)"""
    return LISTENER.get()


def may_help(task: Any, run: Any, state: Any) -> bool:
    """Whether trying again could help: yes for servers and the system, no for faults in input and settings."""
    try:
        state.result()
    except QuitError as error:
        return error.retryable
    except OSError:
        return True
    except Exception:
        return False
    return False


@task(name="shard", task_run_name="{stage}-{index}", cache_policy=NO_CACHE, retry_condition_fn=may_help)
def work_on(
    spec: BuildSpec,
    stage: str,
    reader: str | None,
    index: int,
    count: int,
    first: str | None,
    end: str | None,
    told: Told | None = None,
) -> Report | int:
    """Carry out one shard of one stage; returns the rows of its first table. ``told``: for a worker in another process, which reports."""
    shard = Range(index, count, first, end)
    if told is not None:
        return carry_out(spec, stage, reader, shard, told)
    pipeline = pipeline_of(spec)
    return pipeline.work(pipeline.run(stage, reader), shard)


class Work:
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

    def __enter__(self) -> Work:
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
        pending = [self.pipeline.pending(run) for run in runs]
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
        except QuitError:
            while working:  # what others have in flight was paid for: let it come in before the fault is told
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
            "told": told(self.pipeline, run, self.pipeline.workers) if self._runner.apart else None,
        }
        gpus = self.pipeline.settings.run.gpus if run.stage.name in ("read", "judge", "probe") else 0
        return self._runner.submit(self._task, parameters, finished.put, gpus)

    def _wait_for(self, finished: SimpleQueue[PrefectFuture[Any]]) -> PrefectFuture[Any]:
        while True:
            try:
                return finished.get(timeout=_HEARTBEAT)
            except Empty:
                self._runner.check()

    def _heed(self, run: StageRun, shard: Range, made: Report | int) -> None:
        """Take a worker's report: its parts must be seen here, what it asked is counted here."""
        if isinstance(made, Report):
            seen(self.pipeline, run, shard, made.host)
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


@flow(name="build")  # its shards go to the runner that `run.runner` names
def build(workspace: str, sources: list[str], profile: str = "embedded", overrides: list[str] | None = None) -> str:
    """Build a workspace: carry out every stage that is not up to date, and report.

    ``sources``: ``kind:path``, such as ``triviahg:Copilot.json``. ``profile``: a name or the path of a TOML file.
    ``overrides``: ``key=value``, such as ``labels.max_new_tokens=16``. Returns the run's summary (Markdown).
    One run at a time works on a workspace.
    """
    pipeline = plan_build(workspace, sources, profile, overrides or [])
    listener = listening()
    with pipeline.workspace.lock(pipeline.settings.run.lock_seconds, listener.waiting), Work(pipeline, listener) as do:
        pipeline.begin(profile, overrides or [])
        do("collect")  # sources -> questions, hints, candidates
        do("filter")  # hints that give the answer away, and their questions, go (3.1.2)
        do("rank")  # five hints of highest convergence (3.1.2)
        do("describe")  # question type and difficulty (3.1.3)
        do("probe")  # who answers without hints? (3.1.4)
        do("split")  # train, dev, test (3.1.4)
        do("enumerate")  # 325 passages a question (3.2.1)
        for readers in pipeline.readers_at_once:
            do("read", *readers)  # three labelers, three readers (3.2.2)
        do("judge")  # GPT-Eval: a verdict on each distinct answer (3.2.2)
        do("label")  # 2 fully, 1 partially relevant (3.2.2)
        if pipeline.reviews_applied:
            do("update")  # people's verdicts over the judge's (3.2.4)
    summary = markdown_summary(pipeline.workspace)
    create_markdown_artifact(summary, key="quit-build-summary", description="What was built")
    return summary

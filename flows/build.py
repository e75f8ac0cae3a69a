"""The build flow: from sources to labels, one line a stage (paper, figure 2). Shards of questions are the tasks."""

from __future__ import annotations

import time
from collections import Counter, deque
from contextvars import ContextVar
from itertools import zip_longest
from typing import Any

from prefect import flow, task
from prefect.artifacts import create_markdown_artifact, create_progress_artifact, update_progress_artifact
from prefect.cache_policies import NO_CACHE
from prefect.futures import PrefectFuture, as_completed, wait
from prefect.logging import get_run_logger
from prefect.runtime import task_run
from prefect.task_runners import ThreadPoolTaskRunner

from flows.notices import HOOKS
from flows.parameters import NO_LIMITS, Source
from flows.scheduling import Ended, carry_out
from quit.endpoints import endpoint_of
from quit.errors import QuitError
from quit.pipeline import BuildSpec, Pipeline, StageRun, pipeline_of, plan_build
from quit.settings import Limits
from quit.summary import markdown_links, markdown_summary
from quit.workspace import Range


class Listener:
    """Watches a build: the terminal's progress bar is one. This one does nothing."""

    def progress(self, run: StageRun, done: int, count: int) -> None:
        """Told whenever a shard is done."""

    def waiting(self, message: str) -> None:
        """Told when another run holds the workspace."""


LISTENER: ContextVar[Listener] = ContextVar("quit_build_listener", default=Listener())  # noqa: B039 (it has no state)
"""Who watches the build that is started in this context (not a flow parameter: those are JSON, for schedules and forms)."""


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


def shard_name() -> str:
    """Return what the task run of a shard is called: ``read:minilm-late-3``."""
    given = task_run.parameters
    reader = f":{given['reader']}" if given["reader"] else ""
    return f"{given['stage']}{reader}-{given['index']}"


@task(name="shard", task_run_name=shard_name, cache_policy=NO_CACHE, retry_condition_fn=may_help)
def work_on(
    spec: BuildSpec, stage: str, reader: str | None, index: int, count: int, first: str | None, end: str | None
) -> int:
    """Carry out one shard of one stage; returns the rows of its first table."""
    pipeline = pipeline_of(spec)
    run = pipeline.run(stage, reader)
    fields = {
        "stage": run.key,
        "shard": index,
        "shards": count,
        "first_question": first,
        "end_question": end,
        "endpoint": endpoint_of(pipeline.settings, stage, reader),
        "workspace": spec.workspace,
    }
    started = time.monotonic()
    rows = pipeline.work(run, Range(index, count, first, end))
    took = time.monotonic() - started
    fields |= {"rows": rows, "seconds": round(took, 3)}
    where = "all questions" if (first, end) == (None, None) else f"questions {first or '(first)'} to {end or '(last)'}"
    told = (run.key, index + 1, count, where, fields["endpoint"], rows, took)
    get_run_logger().info("%s: shard %d of %d, %s, %s: %d rows in %.1f s", *told, extra=fields)
    return rows


class Work:
    """Carries out stages in the order they are called, skipping what is done."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        self._spec = pipeline.spec()
        self._progress = LISTENER.get().progress
        self._logger = get_run_logger()
        self._artifact = create_progress_artifact(0.0, key="quit-build", description="Stages of the build")
        self._task = work_on.with_options(
            retries=pipeline.settings.run.retries,
            retry_delay_seconds=[
                pipeline.settings.run.retry_seconds * 2**attempt for attempt in range(pipeline.settings.run.retries)
            ],
        )

    def __call__(self, stage: str, *readers: str) -> None:
        """Run what is missing of a stage, then mark it as complete. Several readers' runs of it go on side by side."""
        runs = [self.pipeline.run(stage, reader) for reader in readers or (None,)]
        waiting = self._waiting(runs)
        before = self.pipeline.models.meter.snapshot()
        try:
            self._carry_out(waiting, self.pipeline.settings.run.workers * len(runs))
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

    def _carry_out(self, waiting: deque[tuple[StageRun, Range]], at_once: int) -> None:
        left = Counter(run.key for run, _ in waiting)
        working: dict[PrefectFuture[int], tuple[StageRun, Range]] = {}
        try:
            while waiting or working:
                while waiting and len(working) < at_once:
                    run, shard = waiting.popleft()
                    where = (shard.index, shard.count, shard.first, shard.end)
                    working[self._task.submit(self._spec, run.stage.name, run.reader, *where)] = (run, shard)
                finished = next(as_completed(list(working)))
                run, shard = working.pop(finished)
                finished.result()
                left[run.key] -= 1
                self._progress(run, shard.count - left[run.key], shard.count)
        except Exception:  # a failed shard, or the run's timeout
            wait(list(working))  # nobody may have the workspace while these still write to it
            raise


@flow(
    name="build", task_runner=ThreadPoolTaskRunner(max_workers=64), **HOOKS
)  # `run.workers` says how many of them work
def build(
    workspace: str,
    sources: list[Source],
    profile: str = "embedded",
    overrides: list[str] | None = None,
    limits: Limits = NO_LIMITS,
) -> str:
    """Build a workspace: carry out every stage that is not up to date, and report; returns the run's summary (Markdown).

    One run at a time works on a workspace; one that finds everything up to date says so and ends.

    Args:
        workspace: Folder of the workspace, as the machine that runs this sees it.
        sources: kind:path, such as triviahg:/data/Copilot.json. With the files of the last run there is nothing new.
        profile: Name of a profile, or the path of a TOML file.
        overrides: key=value over the profile, such as labels.max_new_tokens=16.
        limits: Timeout, retries, late runs, and who hears of a failure.
    """
    return carry_out("build", workspace, limits, lambda: _build(workspace, sources, profile, overrides or []))


def _build(workspace: str, sources: list[str], profile: str, overrides: list[str]) -> Ended:
    pipeline = plan_build(workspace, sources, profile, overrides)
    with pipeline.workspace.lock(pipeline.settings.run.lock_seconds, _waiting):
        if pipeline.up_to_date:
            nothing = f"Nothing new: sources, settings and models of {pipeline.workspace.path} are those of its tables."
        else:
            nothing = None
            carry_out_stages(pipeline, profile, overrides)
    heading = f"**{nothing}** No stage ran.\n\n" if nothing else ""
    summary = heading + markdown_links(pipeline.workspace) + markdown_summary(pipeline.workspace)
    create_markdown_artifact(summary, key="quit-build-summary", description=nothing or "What was built")
    return Ended(summary, nothing)


def carry_out_stages(pipeline: Pipeline, profile: str, overrides: list[str]) -> None:
    """Carry out what is missing, one line a stage. The caller holds the workspace's lock."""
    pipeline.begin(profile, overrides)
    do = Work(pipeline)
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


def _waiting(message: str) -> None:
    get_run_logger().warning(message)
    LISTENER.get().waiting(message)

"""Work of other processes, here or on other machines: what a worker gets, its checks and its result.

A worker gets tables and gives tables, or gets requests to a language model of this program and gives its replies. It
opens no workspace and no source, asks no server, keeps no reply, and writes only to the caches of vectors and models of
its machine. Before it works, it checks that it is the same program with the same models.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from quit import contracts
from quit.common.cache import VARIABLE
from quit.engine.pipeline import Pipeline
from quit.engine.plan import StageRun, models_of
from quit.errors import QuitError, ServerError, WorkspaceError
from quit.models.factory import Models
from quit.models.generation.base import ChatRequest, Completion
from quit.models.language_models import generator_identity
from quit.settings import JudgeSettings, ReaderSettings, Settings, parse
from quit.stages.order import STAGES
from quit.stages.stage import Context, Stage, Tables
from quit.version import __version__


@dataclass(frozen=True)
class Task(ABC):
    """Work for another process.

    ``settings_json``: the effective settings; ``program``: the build's :func:`program`; ``models``: what the results of
    its models depend on; ``cache``: the build's ``QUIT_CACHE``, if set.
    """

    settings_json: str
    program: str
    models: list[str]
    cache: str | None

    @abstractmethod
    def models_here(self, settings: Settings) -> list[str]:
        """Return what ``models`` are for this process."""

    @abstractmethod
    def work(self, settings: Settings, models: Models, whole: Sequence[pa.Table]) -> Any:
        """Return the result."""


@dataclass(frozen=True)
class StageTask(Task):
    """A stage's work on a shard. ``whole``: names of the whole tables, which travel beside it; ``chosen`` and
    ``tables``: the arguments of the stage's function."""

    stage: str
    reader: str | None
    whole: tuple[str, ...]
    overrides: pa.Table | None
    chosen: Sequence[Any]
    tables: Tables

    def models_here(self, settings: Settings) -> list[str]:
        return models_of(self._stage, self.reader, settings)

    def work(self, settings: Settings, models: Models, whole: Sequence[pa.Table]) -> Tables:
        """Return the tables that the stage's function makes."""
        context = Context(dict(zip(self.whole, whole, strict=True)), settings, models, self.reader, self.overrides)
        tables = self._stage.function(context, *self.chosen, **self.tables)
        return {name: tables[name] for name in self._stage.outputs}

    @property
    def _stage(self) -> Stage:
        return next(stage for stage in STAGES if stage.name == self.stage)


@dataclass(frozen=True)
class RequestsTask(Task):
    """Requests to a language model of this program."""

    spec: ReaderSettings | JudgeSettings
    requests: Sequence[ChatRequest]

    def models_here(self, settings: Settings) -> list[str]:
        return [generator_identity(self.spec)]

    def work(self, settings: Settings, models: Models, whole: Sequence[pa.Table]) -> list[Completion]:
        """Return one completion per request, in order."""
        if isinstance(self.spec, ReaderSettings) and not settings.run.parallel_readers:
            models.release_readers(but=self.spec.name)
        return models.generator(self.spec).complete(self.requests)


def may_work_on(run: StageRun, settings: Settings) -> bool:
    """Whether a worker may run the function of a stage run: it asks models of this program, no language model, and
    gets nothing but tables. Requests to a language model of this program are tasks of their own."""
    if run.reader:
        replies = any(spec.name == run.reader for spec in settings.replying_models if spec is not settings.judge)
    elif "judge" in run.stage.models:
        replies = settings.judge in settings.replying_models
    else:
        replies = "convergence" in run.stage.models and settings.convergence.method == "llm"
    return bool({*run.stage.models} - {"labelers"}) and run.stage.takes_tables_alone and not replies


class LostWorker(Exception):
    """The worker of a shard is gone: killed, out of memory, its machine down. Another one can take the shard."""


class LostPlace(ServerError):
    """A place cannot be reached, or not any more: nothing that was given to it will come back."""


@cache
def program() -> str:
    """Return the identity of the program: version, layout of workspaces, hash of the code and its lists of words."""
    root = Path(__file__).parents[2]
    digest = hashlib.sha256()
    for path in sorted(path for path in (root / "quit").rglob("*") if path.suffix in (".py", ".txt", ".gz")):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return f"{__version__}, workspaces {contracts.WORKSPACE_FORMAT}, code {digest.hexdigest()[:10]}"


def stage_task(pipeline: Pipeline, run: StageRun, context: Context, chosen: Sequence[Any], tables: Tables) -> StageTask:
    """Return what a worker gets of a shard, beside the whole tables of ``context``."""
    common = _common(pipeline.settings, pipeline.models_of(run))
    return StageTask(*common, run.stage.name, run.reader, tuple(context.whole), context.overrides, chosen, tables)


def requests_task(settings: Settings, spec: ReaderSettings | JudgeSettings, requests: Sequence[ChatRequest]) -> Task:
    """Return what a worker gets of a language model's requests."""
    return RequestsTask(*_common(settings, [generator_identity(spec)]), spec, requests)


def _common(settings: Settings, models: list[str]) -> tuple[str, str, list[str], str | None]:
    """Return the fields of every task."""
    return settings.model_dump_json(), program(), models, os.environ.get(VARIABLE)


def run_task(task: Task, *whole: pa.Table) -> Any:
    """Return a task's result, in a worker. Every refusal names the worker's machine.

    Raises :class:`WorkspaceError` where this worker must not work: another program, other models; and whatever the
    work raises.
    """
    try:
        if task.program != program():
            raise WorkspaceError(
                f"A worker has another program than the build: {program()} there, {task.program} here. Install the "
                "same on both."
            )
        if task.cache:
            os.environ.setdefault(VARIABLE, task.cache)
        with _LOADING:
            settings, models = _loaded(task.settings_json)
        here = task.models_here(settings)
        if others := [
            f"{worker} there, {build} here" for worker, build in zip(here, task.models, strict=True) if worker != build
        ]:
            raise WorkspaceError(f"A worker has other models than the build: {'; '.join(others)}. Give it the same.")
        return task.work(settings, models, whole)
    except QuitError as error:
        raise type(error)(f"{error} (Worker on {socket.gethostname()}.)") from error


_LOADING = threading.Lock()


@lru_cache(maxsize=1)
def _loaded(settings_json: str) -> tuple[Settings, Models]:
    """Return settings and their models, loaded once. The build alone keeps replies."""
    settings = parse(json.loads(settings_json))
    return settings, Models(settings, keeps_replies=False)

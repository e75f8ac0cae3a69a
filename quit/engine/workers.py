"""Stages run by other processes, here or on other machines: what a worker gets, its checks and its result.

A worker gets tables and gives tables. It opens no workspace and no source, asks no server, and writes only to the
caches of its machine. Before it works, it checks that it is the same program with the same models.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from quit import contracts
from quit.common.cache import VARIABLE, cache_folder
from quit.common.files import replacing
from quit.engine.pipeline import Pipeline
from quit.engine.plan import StageRun, models_of
from quit.errors import QuitError, ServerError, WorkspaceError
from quit.models.factory import Models
from quit.settings import Settings, parse
from quit.stages.order import STAGES
from quit.stages.stage import Context, Tables
from quit.version import __version__


@dataclass(frozen=True)
class Task:
    """A stage's work on a shard.

    ``settings_json``: the effective settings; ``prompts``: contents of the files of prompts that they name;
    ``program``: the build's :func:`program`; ``models``: what the results of its models depend on; ``whole``: names of
    the whole tables, which travel beside it; ``chosen`` and ``tables``: the arguments of the stage's function;
    ``cache``: the build's ``QUIT_CACHE``, if set.
    """

    stage: str
    reader: str | None
    settings_json: str
    prompts: Mapping[str, bytes]
    program: str
    models: list[str]
    whole: tuple[str, ...]
    overrides: pa.Table | None
    chosen: Sequence[Any]
    tables: Tables
    cache: str | None


@dataclass(frozen=True)
class ShardResult:
    """A worker's result. ``usage``: of language models."""

    tables: Tables
    usage: dict[str, dict[str, Any]]


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


def task_of(pipeline: Pipeline, run: StageRun, context: Context, chosen: Sequence[Any], tables: Tables) -> Task:
    """Return what a worker gets of a shard, beside the whole tables of ``context``."""
    readers = [reader for reader in pipeline.settings.readers if reader.name == run.reader]
    names = [pipeline.settings.judge.prompt, *(name for each in readers for name in (each.prompt, each.probe_prompt))]
    return Task(
        run.stage.name,
        run.reader,
        json.dumps(pipeline.settings.model_dump(mode="json")),
        {name: Path(name).read_bytes() for name in names if name.endswith(".txt")},
        program(),
        pipeline.models_of(run),
        tuple(context.whole),
        context.overrides,
        chosen,
        tables,
        os.environ.get(VARIABLE),
    )


def run_task(task: Task, *whole: pa.Table) -> ShardResult:
    """Run a task in a worker. Every refusal names the worker's machine.

    Raises :class:`WorkspaceError` where this worker must not work: another program, other models; and whatever the
    stage raises.
    """
    try:
        if task.program != program():
            raise WorkspaceError(
                f"A worker has another program than the build: {program()} there, {task.program} here. Install the "
                "same on both."
            )
        if task.cache:
            os.environ.setdefault(VARIABLE, task.cache)
        [stage] = (stage for stage in STAGES if stage.name == task.stage)
        with _LOADING:
            settings, models = _loaded(task.settings_json, tuple(task.prompts.items()))
        own = models_of(stage, task.reader, settings)
        if others := [
            f"{worker} there, {build} here" for worker, build in zip(own, task.models, strict=True) if worker != build
        ]:
            raise WorkspaceError(f"A worker has other models than the build: {'; '.join(others)}. Give it the same.")
        if task.reader and not settings.run.parallel_readers:
            models.release_readers(but=task.reader)
        context = Context(dict(zip(task.whole, whole, strict=True)), settings, models, task.reader, task.overrides)
        tables = stage.function(context, *task.chosen, **task.tables)
        return ShardResult({name: tables[name] for name in stage.outputs}, models.meter.take())
    except QuitError as error:
        raise type(error)(f"{error} (Worker on {socket.gethostname()}.)") from error


_LOADING = threading.Lock()


@lru_cache(maxsize=1)
def _loaded(settings_json: str, prompts: Sequence[tuple[str, bytes]]) -> tuple[Settings, Models]:
    """Return settings, whose prompts are files of this machine, and models, loaded once."""
    for name, content in prompts:
        path = cache_folder("prompts") / hashlib.sha256(content).hexdigest()[:16] / Path(name).name
        with replacing(path) as temporary:
            temporary.write_bytes(content)
        settings_json = settings_json.replace(json.dumps(name), json.dumps(str(path)))
    settings = parse(json.loads(settings_json))
    return settings, Models(settings)

"""Shards worked on by other processes, here or on other machines: the build that a worker gets, its checks and its
report.

A worker shares only files with the build: the sources and the workspace, under the same paths. Before it works, it
checks four things: it is the same program; it sees the workspace that the build holds; it would make the same tables;
and the tables that it reads have arrived.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from quit import contracts
from quit.common.cache import VARIABLE
from quit.common.ranges import Range
from quit.engine.pipeline import Pipeline
from quit.engine.plan import StageRun
from quit.engine.workspace import Workspace
from quit.errors import QuitError, ServerError, WorkspaceError
from quit.models.factory import Models
from quit.models.generation.ledger import UNLIMITED, Amount
from quit.settings import Settings, parse
from quit.sources import parse_source
from quit.version import __version__

_POLL_SECONDS = 0.5  # between looks at a folder that another machine writes to
_PATIENCE = 90.0  # seconds after which every network file system shows what another machine has written


@dataclass(frozen=True)
class RemoteBuild:
    """A build as a worker elsewhere gets it. Hashable and serialisable.

    ``settings_json``: the effective settings; ``sources``: ``kind:path`` with whole paths; ``override_parts``: how many
    parts of the log of overrides count (later ones are for the next build); ``program``: the build's :func:`program`;
    ``holder``: who holds the workspace; ``fingerprint``: of the stage run in the build; ``processes``: how many work at
    a time and share the servers' limits; ``cache``: the build's ``QUIT_CACHE``, if set.
    """

    workspace: str
    settings_json: str
    sources: tuple[str, ...]
    override_parts: int
    program: str
    holder: str
    fingerprint: str
    processes: int
    cache: str | None

    @property
    def settings(self) -> Settings:
        """The effective settings."""
        return parse(json.loads(self.settings_json))


@dataclass(frozen=True)
class ShardResult:
    """A worker's result. ``usage``: of language models; ``spent``: what that cost."""

    usage: dict[str, dict[str, Any]]
    spent: Amount
    host: str


class LostWorker(Exception):
    """The worker of a shard is gone: killed, out of memory, its machine down. Another one can take the shard."""


class LostPlace(ServerError):
    """A place cannot be reached, or not any more: nothing that was given to it will come back."""


@cache
def program() -> str:
    """Return the identity of the program: version, layout of workspaces, hash of the code."""
    root = Path(__file__).parents[2]
    digest = hashlib.sha256()
    for path in sorted((root / "quit").rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return f"{__version__}, workspaces {contracts.WORKSPACE_FORMAT}, code {digest.hexdigest()[:10]}"


def remote_build(pipeline: Pipeline, run: StageRun, processes: int) -> RemoteBuild:
    """Return the build as workers get it for shards of a stage run. The caller holds the workspace."""
    return RemoteBuild(
        pipeline.workspace.address,
        pipeline.settings.model_dump_json(),
        tuple(f"{source.kind}:{source.path.resolve()}" for source in pipeline.sources),
        pipeline.override_parts,
        program(),
        pipeline.workspace.holder,
        pipeline.fingerprints[run.key],
        processes,
        os.environ.get(VARIABLE),
    )


def work_on(build: RemoteBuild, run: str, shard: Range, part: Amount = UNLIMITED) -> ShardResult:
    """Carry out one shard of a stage run in a worker of another process. Every refusal names the worker's machine.
    ``part``: of the build's cap.

    Raises :class:`WorkspaceError` where this worker must not work: another program, another folder, other inputs, or
    tables that have not arrived; and whatever the stage raises.
    """
    host = socket.gethostname()
    try:
        pipeline = _ready_pipeline(build, run)
        stage_run, ledger = pipeline.stage_run(run), pipeline.models.ledger
        ledger.grant(part)
        if not pipeline.workspace.part_done(pipeline.folder(stage_run), stage_run.stage.outputs, shard):
            pipeline.work_on(stage_run, shard)
        return ShardResult(pipeline.models.meter.take(), ledger.spent, host)
    except QuitError as error:
        raise type(error)(f"{error} (Worker on {host}.)") from error


def _ready_pipeline(build: RemoteBuild, key: str) -> Pipeline:
    """Return this worker's pipeline when it may work on a stage run."""
    if build.program != program():
        raise WorkspaceError(
            f"A worker has another program than the build: {program()} there, {build.program} here. Install the same "
            "on both."
        )
    if build.cache:
        os.environ.setdefault(VARIABLE, build.cache)
    folder = build.workspace
    if not _wait(lambda: Workspace(folder).exists):
        raise WorkspaceError(
            f"A worker cannot see the workspace {folder}. Mount the shared folder there under the same path, or use "
            "a runner of this machine."
        )
    pipeline = _same_pipeline(build, key)
    if not _wait(lambda: pipeline.workspace.holder == build.holder):
        raise WorkspaceError(
            f"A worker sees another folder at {folder}: it is held by {pipeline.workspace.holder or 'nobody'} there, "
            f"by {build.holder} here. Mount the shared folder there under the same path."
        )
    run = pipeline.stage_run(key)
    if not _wait(lambda: not pipeline.missing_inputs(run)):
        raise WorkspaceError(
            f"A worker does not see the tables of {', '.join(pipeline.missing_inputs(run))} after {_PATIENCE:g} s. "
            f"Check the shared folder {folder}."
        )
    return pipeline


def _same_pipeline(build: RemoteBuild, key: str) -> Pipeline:
    """Return this worker's pipeline, planned again where sources or reviews have changed since it was planned; refuse
    another one."""
    all_shards = replace(build, fingerprint="", holder="")  # what does not change between the shards of a build
    for fresh in (False, True):
        with _PLANNING:
            if fresh:
                _pipeline.cache_clear()
            pipeline = _pipeline(all_shards)
        fingerprint = pipeline.fingerprints[pipeline.stage_run(key).key]
        if fingerprint == build.fingerprint:
            return pipeline
    raise WorkspaceError(
        f"A worker would make other tables in {key} ({fingerprint}) than the build ({build.fingerprint}): its "
        "sources, prompts, models or reviews differ. Give it the same files; it runs Python "
        f"{platform.python_version()}."
    )


_PLANNING = threading.Lock()


@lru_cache(maxsize=1)
def _pipeline(build: RemoteBuild) -> Pipeline:
    """Plan the build in this worker: once, so that its models are loaded once."""
    settings = build.settings
    sources = [parse_source(text) for text in build.sources]
    models = Models(settings, build.processes)
    return Pipeline(
        Workspace.open(build.workspace), settings, sources, override_parts=build.override_parts, models=models
    )


def wait_for_parts(pipeline: Pipeline, run: StageRun, shard: Range, host: str) -> None:
    """Wait until the parts that a worker has written are seen here. Raises :class:`WorkspaceError` when they do not
    come."""
    folder = pipeline.folder(run)
    if not _wait(lambda: pipeline.workspace.part_done(folder, run.stage.outputs, shard)):
        raise WorkspaceError(
            f"{host} says that it has written part {shard.index} of {run.key}, but {folder} does not show it after "
            f"{_PATIENCE:g} s. Is {pipeline.workspace} the same shared folder on both machines?"
        )


def _wait(condition: Callable[[], bool]) -> bool:
    """Whether something is so, now or soon: network file systems remember for a while what was not there."""
    until = time.monotonic() + _PATIENCE
    while not condition():
        if time.monotonic() >= until:
            return False
        time.sleep(_POLL_SECONDS)
    return True

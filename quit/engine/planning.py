"""Plan a job on a workspace: once, and while the workspace is held. Builds, reviews and releases take the lock here and
nowhere else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pyarrow as pa

from quit.common.progress import note
from quit.common.ranges import WHOLE
from quit.engine.pipeline import Pipeline, check_buildable
from quit.engine.workspace import Workspace
from quit.errors import InputError, SettingsError, WorkspaceError
from quit.review.store import ReviewStore
from quit.settings import Settings, load
from quit.sources import SOURCES, SourceRef, parse_source
from quit.stages.labelling.verdicts import live_reviews
from quit.stages.split import read_pins
from quit.store.parts import part_name, read_part
from quit.text.words import counted

_HELD: ContextVar[Pipeline | None] = ContextVar("quit_held_build", default=None)


@contextmanager
def held_build(
    workspace: str | Path,
    sources: Sequence[str],
    profile: str,
    overrides: Sequence[str],
    *,
    add: bool = False,
    replace: bool = False,
) -> Iterator[Pipeline]:
    """Hold a workspace and plan its build; parts that are damaged are removed first. The workspace is created where
    there is none.

    ``sources``: those of the last build where none is named; with ``add`` they come after those. How many questions
    leave the workspace and come is noted; ``replace``: reviewed ones may leave.

    Review settings that were set for the workspace (``quit review push --set``) stay in force unless ``overrides`` name
    them. Within the block the same workspace is neither locked nor planned again: a caller that has a plan calls the
    flow, which finds it.

    Raises ``InputError`` for a source that cannot be read, ``SettingsError``, and ``WorkspaceError`` where another run
    holds it, or reviewed questions would leave.
    """
    if (planned := _held(workspace)) is not None:
        yield planned
        return
    settings, _ = checked_build(_sources_of_build(Workspace.at(workspace), sources, add), profile, overrides)
    opened = Workspace.create(workspace)
    with _holding(opened, settings):
        settings, refs = checked_build(_sources_of_build(opened, sources, add), profile, overrides)
        if remembered := _remembered_review(opened, overrides):
            overrides = [*overrides, *remembered]
            settings = load(profile, overrides).settings
        asked_as = {"profile": profile, "overrides": list(overrides)}
        pipeline = Pipeline(opened, settings, refs, asked_as=asked_as)
        for line in pipeline.discard_damaged():
            note(line, loud=True)
        _check_questions(pipeline, replace)
        with _planned_as(pipeline):
            yield pipeline


def _sources_of_build(workspace: Workspace, sources: Sequence[str], add: bool) -> Sequence[str]:
    """Return the sources of a build: as named, after those of the last build with ``add``, or the latter alone."""
    last = (workspace.build or {}).get("sources", []) if workspace.exists else []
    if not sources or not add:
        return sources or last
    new = [f"{ref.kind}:{ref.path.resolve()}" for ref in map(parse_source, sources)]
    return [*last, *(text for text in new if text not in last)]


def _check_questions(pipeline: Pipeline, replace: bool) -> None:
    """Note how many questions leave a workspace and come; one with another text is another question.

    The sources are collected for that, where they are not yet. Raises ``WorkspaceError`` where reviewed questions would
    leave, unless ``replace``; nothing is changed then.
    """
    workspace, run = pipeline.workspace, pipeline.stage_run("collect")
    if workspace.state.get(run.key) in (None, pipeline.fingerprints[run.key]):
        return
    before = _texts(workspace.read("questions"))
    for shard in pipeline.pending(run):
        pipeline.work_on(run, shard)
    part = pipeline.folder(run) / "questions" / part_name(WHOLE)
    workspace.store.fetch({part: None})
    after = _texts(read_part(part))
    departures, arrivals = dict(before.items() - after.items()), after.items() - before.items()
    reviews = live_reviews(ReviewStore(workspace).read())
    if (losses := sorted(departures.keys() & {*reviews["question_id"].to_pylist()})) and not replace:
        if not pipeline.is_done(run):
            workspace.discard(pipeline.folder(run))
        raise WorkspaceError(
            f"{counted(len(losses), 'reviewed question')} would leave {workspace} or get another text: "
            f"{', '.join(losses[:3])}{', ...' if len(losses) > 3 else ''}. Nothing was changed. Name all sources, "
            "keep those of the last build with --add, or let reviewed questions leave with --replace."
        )
    if departures or arrivals:
        leave = counted(len(departures), "question leaves", "questions leave")
        note(f"{leave}, {counted(len(arrivals), 'comes', 'come')}.", loud=bool(departures))


def _texts(questions: pa.Table) -> dict[str, str]:
    return dict(zip(*(questions[name].to_pylist() for name in ("question_id", "question")), strict=True))


@contextmanager
def held_last_build(workspace: str | Path, review: Sequence[str] = ()) -> Iterator[Pipeline]:
    """Hold a workspace and plan its last build; within the block it is neither locked nor planned again, as in
    :func:`held_build`.

    ``review``: overrides of ``review.*`` settings, remembered from now on. Raises what :func:`last_build` raises,
    ``SettingsError`` for an override of anything else or within a block that holds the workspace already, and
    ``WorkspaceError`` where another run holds it.
    """
    if (planned := _held(workspace)) is not None:
        if review:
            raise SettingsError(f"{workspace} is planned already: name {', '.join(review)} where it is planned.")
        yield planned
        return
    opened = Workspace.open(workspace)
    settings = load(opened.build["profile"], opened.build["overrides"]).settings if opened.build else Settings()
    with _holding(opened, settings):
        known = opened.build
        if known is not None and review:
            known = {**known, "overrides": _with_review(known["overrides"], review)}
        pipeline = _planned(opened, known)
        if known is not None:
            opened.set_build(known)
        with _planned_as(pipeline):
            yield pipeline


def _held(workspace: str | Path) -> Pipeline | None:
    """Return the plan of whoever calls us, where it is one of this workspace."""
    planned = _HELD.get()
    return planned if planned is not None and planned.workspace.address == Workspace.at(workspace).address else None


@contextmanager
def _planned_as(pipeline: Pipeline) -> Iterator[None]:
    mark = _HELD.set(pipeline)
    try:
        yield
    finally:
        _HELD.reset(mark)


@contextmanager
def _holding(workspace: Workspace, settings: Settings) -> Iterator[None]:
    with workspace.lock(settings.run.lock_seconds, note):
        yield


def plan_build(workspace: str | Path, sources: Sequence[str], profile: str, overrides: Sequence[str]) -> Pipeline:
    """Return the plan of a build without holding its workspace, which is created where there is none.

    Raises ``InputError`` for a source that cannot be read, ``SettingsError`` and ``WorkspaceError``; nothing is created
    then.
    """
    settings, refs = checked_build(sources, profile, overrides)
    asked_as = {"profile": profile, "overrides": list(overrides)}
    pipeline = Pipeline(Workspace.at(workspace), settings, refs, asked_as=asked_as)
    _ = pipeline.fingerprints
    Workspace.create(workspace)
    return pipeline


def checked_build(sources: Sequence[str], profile: str, overrides: Sequence[str]) -> tuple[Settings, list[SourceRef]]:
    """Return settings and sources of what can be built, before a workspace is created.

    Raises ``SettingsError`` and ``InputError`` for what cannot.
    """
    settings = load(profile, overrides).settings
    refs = [parse_source(text) for text in sources]
    if not refs:
        raise InputError(
            "A build needs at least one source: --source starter (the bundled collection), --source FILE.csv, or "
            f"--source KIND:PATH with one of {', '.join(SOURCES)}."
        )
    check_buildable(settings)
    read_pins(settings.split.pinned)
    return settings, refs


def last_build(workspace: Workspace) -> Pipeline:
    """Return the plan of a workspace's last build, without holding it.

    Raises ``InputError`` when nothing was built or a source cannot be read any more.
    """
    return _planned(workspace, workspace.build)


def _planned(workspace: Workspace, known: Mapping[str, Any] | None) -> Pipeline:
    if known is None:
        raise InputError(f"{workspace} has not been built yet. Run: quit build -w {workspace} --source KIND:PATH")
    settings = load(known["profile"], known["overrides"]).settings
    asked_as = {"profile": known["profile"], "overrides": known["overrides"]}
    pipeline = Pipeline(workspace, settings, [parse_source(text) for text in known["sources"]], asked_as=asked_as)
    _ = pipeline.fingerprints  # reads the sources, so that a missing one shows now
    return pipeline


def readable_build(workspace: Workspace) -> Pipeline | None:
    """Return the plan of a workspace's last build, or None where there is none or its sources cannot be read any
    more."""
    try:
        return last_build(workspace)
    except InputError:
        return None


def _remembered_review(workspace: Workspace, overrides: Sequence[str]) -> list[str]:
    """Return the overrides of review settings that people have set for this workspace, where the build names none."""
    named = {text.partition("=")[0].strip() for text in overrides}
    known = (workspace.build or {}).get("overrides", [])
    keyed = ((text.partition("=")[0].strip(), text) for text in known)
    return [text for key, text in keyed if key.startswith("review.") and key not in named]


def _with_review(overrides: Sequence[str], review: Sequence[str]) -> list[str]:
    changed = list(overrides)
    for text in review:
        key = text.partition("=")[0].strip()
        if not key.startswith("review."):
            raise SettingsError(
                f"--set {text!r}: only review settings can change here; for others run quit build again."
            )
        changed = [known for known in changed if known.partition("=")[0].strip() != key] + [text]
    return changed

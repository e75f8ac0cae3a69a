"""Carries stages out over a workspace: what has to run, on which shard, under which fingerprint. Knows no scheduler.

A stage run's fingerprint is a hash of its inputs' fingerprints, its stage's name and version, its tables' columns, the settings it
reads and the identities of its models. All fingerprints follow from sources and settings alone, so they are known before anything runs:
what has a manifest under its fingerprint is done, what has some parts is resumed at the first missing one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from threading import Lock
from typing import Any

import pyarrow as pa

import schemas
from quit.construct.collect import collect
from quit.construct.split import read_pins
from quit.damage import came_out_the_same, discard_damaged
from quit.errors import InputError, SettingsError
from quit.ids import content_hash
from quit.models.factory import Models, identities, reader_identity
from quit.overrides import decisions, in_force
from quit.ranges import WHOLE, Range, ranges
from quit.review.store import ReviewStore
from quit.review.verdicts import decide, decisions_hash
from quit.settings import PLACES, Settings, load, parse
from quit.sources import SOURCES, SourceRef, parse_source, read_sources, source_checksum
from quit.stages import STAGES, Context, Inputs, Stage
from quit.usage import record
from quit.workspace import Workspace


@dataclass(frozen=True)
class StageRun:
    """A stage, or one reader's run of it."""

    stage: Stage
    reader: str | None = None

    @property
    def key(self) -> str:
        """``rank``, ``read:minilm-late``: names the run in the workspace."""
        return self.stage.name if self.reader is None else f"{self.stage.name}:{self.reader}"


@dataclass(frozen=True)
class BuildSpec:
    """Everything a worker needs to carry out a part of a build; hashable and serialisable.

    ``settings`` is the JSON of the effective settings, ``sources`` are ``kind:path`` with absolute paths, ``decided`` is how many
    parts of the log of overrides count: what people add later is for the next build.
    """

    workspace: str
    settings: str
    sources: tuple[str, ...]
    decided: int

    @property
    def visible_seconds(self) -> float:
        """How long a worker waits for files that another machine writes (``run.visible_seconds``)."""
        return json.loads(self.settings)["run"]["visible_seconds"]


class Pipeline:
    """One build of one workspace."""

    def __init__(
        self,
        workspace: Workspace,
        settings: Settings,
        sources: Sequence[SourceRef],
        *,
        decided: int | None = None,
        models: Models | None = None,
    ) -> None:
        check_labelers(settings)
        self.workspace = workspace
        self.settings = settings
        self.sources = tuple(sources)
        self.models = models or Models(settings)
        self.models.on_cache = workspace.keep_replies
        workspace.heed(settings)
        self.decided = len(workspace.log_files("overrides")) if decided is None else decided
        self._whole: dict[tuple[str, ...], pa.Table] = {}
        self._whole_lock = Lock()

    @cached_property
    def runs(self) -> list[StageRun]:
        """The stage runs in pipeline order; the label update is one where reviews are applied."""
        runs = []
        for stage in STAGES:
            if stage.name == "update" and not self.reviews_applied:
                continue
            runs += (
                [StageRun(stage, reader.name) for reader in self.settings.readers]
                if stage.per_reader
                else [StageRun(stage)]
            )
        return runs

    @property
    def readers_at_once(self) -> list[list[str]]:
        """The readers' names in the groups that read side by side: one by one, or all (``run.readers_together``)."""
        names = [reader.name for reader in self.settings.readers]
        return [names] if self.settings.run.readers_together else [[name] for name in names]

    @property
    def workers(self) -> int:
        """Shards of a run that are worked on at a time: not more than a server may have requests in flight, where processes share it."""
        run = self.settings.run
        return (
            run.workers
            if run.runner == "threads"
            else min([run.workers, *(one.concurrency for one in self.settings.servers)])
        )

    @property
    def reviews_applied(self) -> bool:
        """Whether labels rest on people's verdicts too (``quit review apply``)."""
        return bool(self._applied)

    @cached_property
    def _applied(self) -> list[str]:
        return ReviewStore(self.workspace).applied

    @cached_property
    def decisions(self) -> pa.Table:
        """What the applied reviews come to (schema ``quit.review.verdicts.DECISIONS``)."""
        return decide(ReviewStore(self.workspace).read(self._applied), self.settings.review)

    def run(self, stage: str, reader: str | None = None) -> StageRun:
        """Return the stage run of that name."""
        return next(run for run in self.runs if run.stage.name == stage and run.reader == reader)

    @cached_property
    def source_checksums(self) -> list[str]:
        """The checksums of the sources as planned. Raises ``InputError`` for one that cannot be read."""
        return [source_checksum(source) for source in self.sources]

    @cached_property
    def fingerprints(self) -> dict[str, str]:
        """Stage run -> fingerprint. Reads the sources once, to hash them; raises ``InputError`` when one cannot be read."""
        made: dict[str, str] = {}
        makers: dict[str, list[str]] = {}
        for run in self.runs:
            stage = run.stage
            if stage.name == "collect":
                inputs: list[Any] = [
                    [source.kind, source.path.name, checksum]
                    for source, checksum in zip(self.sources, self.source_checksums, strict=True)
                ]
            else:
                inputs = [
                    [
                        name,
                        decisions_hash(self.decisions) if name == "decisions" else [made[key] for key in makers[name]],
                    ]
                    for name in (*stage.inputs, *stage.whole)
                ]
            if stage.overrides:
                inputs.append(["overrides", decisions(self.overrides_of(stage))])
            columns = [schemas.table(name).shape for name in stage.outputs]
            made[run.key] = content_hash(
                inputs, stage.name, stage.version, columns, self._settings_of(stage), self._models_of(run), size=8
            )
            for name in stage.outputs:
                if name != "rejects":
                    makers.setdefault(name, []).append(run.key)
        return made

    def overrides_of(self, stage: Stage) -> pa.Table:
        """Return the overrides in force that a stage heeds, as they were when this build was planned."""
        return in_force(self._overrides, stage.overrides)

    @cached_property
    def _overrides(self) -> pa.Table:
        return self.workspace.read_log("overrides", self.decided)

    def folder(self, run: StageRun) -> Path:
        """Return the folder of a stage run's tables."""
        return self.workspace.folder(run.key, run.stage.number, self.fingerprints[run.key])

    def is_done(self, run: StageRun) -> bool:
        """Whether the stage run has its manifest."""
        return self.workspace.manifest(self.folder(run)) is not None

    @property
    def up_to_date(self) -> bool:
        """Whether nothing has to run."""
        return all(self.is_done(run) for run in self.runs) and self.workspace.state == self.fingerprints

    def shards(self, run: StageRun) -> list[Range]:
        """Return the shards of a stage run: contiguous ranges of the collection's sorted question ids."""
        if run.stage.scope == "collection":
            return [WHOLE]
        identities = self._read_whole("questions").column("question_id").to_pylist()
        wanted = self.settings.run.shards or -(-len(identities) // self.settings.run.shard_questions)
        return ranges(identities, wanted)

    def pending(self, run: StageRun, *, publish: bool = False) -> list[Range]:
        """Return the shards that are still to do (none if the run is complete, under whatever number of shards)."""
        if self.is_done(run):
            return []
        folder = self.folder(run)
        done = partial(self.workspace.part_done, folder, run.stage.outputs, publish=publish)
        return [shard for shard in self.shards(run) if not done(shard)]

    def missing_inputs(self, run: StageRun) -> list[str]:
        """Return the stage runs before this one whose current tables cannot be seen: none where it may be carried out."""
        earlier = self.runs[: self.runs.index(run)]
        current = {key: folder.name for key, (folder, _) in self.workspace.current().items()}
        wanted = {*run.stage.inputs, *run.stage.whole}
        return [
            one.key
            for one in earlier
            if wanted & set(one.stage.outputs) and current.get(one.key) != self.fingerprints[one.key]
        ]

    def work(self, run: StageRun, shard: Range) -> int:
        """Carry out one shard of a stage run and write its parts; returns the number of rows of its first table."""
        stage = run.stage
        self.workspace.refresh()  # of a worker elsewhere: the stages before this one are finished by now
        if stage.name == "collect":
            made = self._collect()
        else:
            whole = {name: self._read_whole(name) for name in stage.whole}
            if stage.overrides:
                whole["overrides"] = self.overrides_of(stage)
            made = stage.run(self._inputs(run, shard), Context(whole, self.settings, self.models, run.reader))
        self.workspace.write_part(self.folder(run), shard, {name: made[name] for name in stage.outputs})
        return len(made[stage.outputs[0]])

    def finish(self, run: StageRun) -> None:
        """Mark a stage run as complete and its tables as the current ones."""
        if not self.is_done(run):
            facts = {
                "stage": run.stage.name,
                "reader": run.reader,
                "version": run.stage.version,
                "fingerprint": self.fingerprints[run.key],
                "settings": self._settings_of(run.stage),
                "models": self._models_of(run),
                "supersedes": list(run.stage.supersedes),
            }
            if run.stage.name == "collect":
                facts["sources"] = [
                    {"kind": source.kind, "file": source.path.name, "sha256": checksum}
                    for source, checksum in zip(self.sources, self.source_checksums, strict=True)
                ]
            self.workspace.finish(self.folder(run), run.stage.outputs, len(self.shards(run)), facts)
            if not came_out_the_same(self.workspace, self.folder(run)):
                self._discard_what_rests_on(run)
        # What is finished further down stays current: a resumed build never shows less than is there.
        known = self.workspace.state.items()
        done = {each.key for each in self.runs if (each.key, self.fingerprints[each.key]) in known} | {run.key}
        self._set_current(done)

    def record_usage(self, name: str, before: dict[str, dict[str, Any]]) -> None:
        """Write down what a stage (or one reader's run) asked of language models since ``before``, a snapshot of their meter."""
        with self.workspace.changing("usage.jsonl"):
            record(self.workspace.path, name, before, self.models.meter.snapshot(), self.workers)

    def begin(self, profile: str, overrides: Sequence[str]) -> None:
        """Remember how the workspace is built, and keep as current only what this build would make again."""
        named = str(Path(profile).resolve()) if profile.endswith(".toml") else profile
        sources = [f"{source.kind}:{source.path.resolve()}" for source in self.sources]
        self.workspace.set_build({"profile": named, "overrides": list(overrides), "sources": sources})
        self._set_current({run.key for run in self.runs if self.is_done(run)})

    def discard_damaged(self) -> list[str]:
        """Remove what is not what the stages of this build wrote, so that they make it anew; returns a line a file for people.

        Every part of a complete stage is compared with its manifest's checksum. The caller holds the workspace.
        """
        return [
            f"{run.key}: {fault} It is made anew."
            for run in self.runs
            for fault in discard_damaged(self.workspace, self.folder(run), run.stage.outputs)
        ]

    def _set_current(self, done: set[str]) -> None:
        self.workspace.set_current({run.key: self.fingerprints[run.key] for run in self.runs if run.key in done})

    def _discard_what_rests_on(self, changed: StageRun) -> None:
        """Remove the tables of later stages that were made from parts which are gone: their fingerprint cannot tell."""
        tables = {*changed.stage.outputs} - {"rejects"}
        for run in self.runs[self.runs.index(changed) + 1 :]:
            if tables & {*run.stage.inputs, *run.stage.whole}:
                tables |= {*run.stage.outputs} - {"rejects"}
                self.workspace.discard(self.folder(run))

    def planned_again(self) -> Pipeline:
        """Return this build as it would be planned now, with the same models: what was applied or overruled meanwhile counts."""
        return _remember(Pipeline(self.workspace, self.settings, self.sources, models=self.models))

    def spec(self) -> BuildSpec:
        """Return this build as something that can be sent to a worker."""
        return BuildSpec(
            self.workspace.address,
            self.settings.model_dump_json(),
            tuple(f"{source.kind}:{source.path.resolve()}" for source in self.sources),
            self.decided,
        )

    def _collect(self) -> dict[str, pa.Table]:
        return collect(
            read_sources(self.sources, self.source_checksums),
            duplicates=self.settings.collect.duplicates,
            min_hints=self.settings.convergence.hints,
        )

    def _inputs(self, run: StageRun, shard: Range) -> Inputs:
        """Return the inputs of a stage run: tables of the runs before it, never of a later one that supersedes them."""
        earlier = self.runs[: self.runs.index(run)]
        makers = {name: [one.key for one in earlier if name in one.stage.outputs] for name in run.stage.inputs}

        def only(name: str, identities: Sequence[str], columns: Sequence[str], reader: str | None) -> pa.Table:
            runs = makers[name] if reader is None else [key for key in makers[name] if key.endswith(f":{reader}")]
            return self.workspace.read_questions(name, identities, columns, runs)

        return Inputs(run.stage.inputs, lambda name: self.workspace.read(name, shard, makers[name]), only)

    def _read_whole(self, name: str) -> pa.Table:
        """Return a whole table, remembered as long as its makers' fingerprints are current."""
        if name == "decisions":
            return self.decisions
        makers = [run.key for run in self.runs if name in run.stage.outputs]
        key = (name, *(self.fingerprints[maker] for maker in makers))
        with self._whole_lock:
            if key not in self._whole:
                self._whole[key] = self.workspace.read(name)
            return self._whole[key]

    def _settings_of(self, stage: Stage) -> dict[str, Any]:
        whole = self.settings.model_dump(mode="json")
        found: dict[str, Any] = {}
        for section in stage.sections:
            value: Any = whole
            for step in section.split("."):
                value = value[step]
            if isinstance(value, dict):
                value = {key: one for key, one in value.items() if f"{section}.{key}" not in PLACES}
            if section == "split" and value["pinned"]:
                value["pinned"] = content_hash("pins", read_pins(value["pinned"]))  # what it says, not where it lies
            found[section] = value
        return found

    def _models_of(self, run: StageRun) -> list[str]:
        found: list[str] = []
        for name in run.stage.models:
            if name == "readers":
                found += [reader_identity(reader, self.settings) for reader in self.settings.readers]
            elif name == "labelers":
                found += [labeler.name for labeler in self.settings.labelers]
            elif name == "reader":
                spec = next(reader for reader in self.settings.readers if reader.name == run.reader)
                found.append(reader_identity(spec, self.settings))
            else:
                found += identities(self.settings, [name])
        return found


def check_labelers(settings: Settings) -> None:
    """Raise ``SettingsError`` for settings that can label nothing."""
    if not settings.labelers:
        raise SettingsError(
            "The profile names no reader with role 'labeler'; labels need at least one. Profiles do not inherit: start from "
            "a complete copy, such as: quit settings --profile embedded --toml > mine.toml"
        )


def last_build(workspace: Workspace, review: Sequence[str] = ()) -> Pipeline:
    """Return the pipeline of a workspace's last build; ``review``: overrides of ``review.*`` settings, remembered from then on.

    Remembering takes the workspace's lock for a moment, so a caller that holds it must not give ``review``. Raises ``InputError`` when
    nothing was built or a source cannot be read any more, ``SettingsError`` for an override of anything else, :class:`WorkspaceError`
    where another run holds the workspace.
    """
    known = workspace.build
    if known is None:
        raise InputError(f"{workspace} has not been built yet. Run: quit build -w {workspace} --source KIND:PATH")
    overrides = _with_review(known["overrides"], review)
    settings = load(known["profile"], overrides).settings
    pipeline = Pipeline(workspace, settings, [parse_source(text) for text in known["sources"]])
    _ = pipeline.fingerprints
    if overrides == known["overrides"]:
        return pipeline
    with workspace.lock(settings.run.lock_seconds):
        known = workspace.build or known  # a build may have had the lock until now
        workspace.set_build({**known, "overrides": _with_review(known["overrides"], review)})
    return last_build(workspace)


def _with_review(overrides: Sequence[str], review: Sequence[str]) -> list[str]:
    changed = list(overrides)
    for text in review:
        key = text.partition("=")[0].strip()
        if not key.startswith("review."):
            raise SettingsError(
                f"--set {text!r}: only review settings can change here; for others run quit build again."
            )
        changed = [each for each in changed if each.partition("=")[0].strip() != key] + [text]
    return changed


def readable_build(workspace: Workspace) -> Pipeline | None:
    """Return the pipeline of a workspace's last build, or None where there is none or its sources cannot be read any more."""
    try:
        return last_build(workspace)
    except InputError:
        return None


def plan_build(workspace: str | Path, sources: Sequence[str], profile: str, overrides: Sequence[str]) -> Pipeline:
    """Return the pipeline of a build; the workspace is made where there is none.

    Raises ``InputError`` for a source that cannot be read, ``SettingsError`` and ``WorkspaceError``; nothing is made then.
    """
    settings = load(profile, overrides).settings
    refs = [parse_source(text) for text in sources]
    if not refs:
        raise InputError(
            "A build needs at least one source, such as --source triviahg:FILE. Kinds: " + ", ".join(SOURCES) + "."
        )
    pipeline = Pipeline(Workspace.at(workspace), settings, refs)
    _ = pipeline.fingerprints  # reads every source: a fault in one shows before a folder is made
    Workspace.create(workspace)
    return _remember(pipeline)


_PIPELINES: dict[BuildSpec, Pipeline] = {}
_REMEMBERING = Lock()


def _remember(pipeline: Pipeline) -> Pipeline:
    """Keep the last pipeline of this process, so that its workers find it with its models loaded."""
    spec = pipeline.spec()
    known = _PIPELINES.get(spec)
    if (
        known is None or known.fingerprints != pipeline.fingerprints
    ):  # sources or applied reviews have changed meanwhile
        _PIPELINES.clear()
        _PIPELINES[spec] = pipeline
    return _PIPELINES[spec]


def pipeline_of(spec: BuildSpec, processes: int = 1, fresh: bool = False) -> Pipeline:
    """Return the pipeline of a spec; a worker process makes it once, so that its models are loaded once.

    ``processes``: how many ask the same servers at a time (:class:`quit.models.factory.Models`). ``fresh``: read sources and reviews anew.
    """
    with _REMEMBERING:
        if spec in _PIPELINES and not fresh:
            return _PIPELINES[spec]
        settings = parse(json.loads(spec.settings))
        sources = [parse_source(text) for text in spec.sources]
        models = Models(settings, processes)
        workspace = Workspace.open(spec.workspace)
        return _remember(Pipeline(workspace, settings, sources, decided=spec.decided, models=models))

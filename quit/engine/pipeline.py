"""A build of a workspace: what has to run, on which shard, under which fingerprint, and how a shard is worked on. Knows
no scheduler.

A stage run's fingerprint is a hash of its inputs' fingerprints, its stage's name and version, its tables' columns, the
settings it reads and the identities of its models. All fingerprints follow from sources and settings alone, so they are
known before anything runs: what has a manifest under its fingerprint is done, what has some parts is resumed at the
first missing one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from threading import Lock
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from quit import contracts
from quit.common.ids import content_hash
from quit.common.ranges import WHOLE, Range, ranges
from quit.engine.damage import came_out_the_same, discard_damaged, forget_damage
from quit.engine.usage import record
from quit.engine.workspace import Workspace
from quit.errors import InputError, SettingsError
from quit.models.factory import Models, reader_identity
from quit.review.overrides import decisions, in_force
from quit.review.store import ReviewStore
from quit.settings import IN_IDENTITIES, Settings
from quit.sources import SourceRef, read_sources, source_checksum
from quit.stages import STAGES, judge_stage, read_stage, select_stage
from quit.stages.identities import identities
from quit.stages.labelling.verdicts import decide, decisions_hash
from quit.stages.selection import MAX_HINTS
from quit.stages.split import read_pins
from quit.stages.stage import Context, Stage
from quit.text.words import counted


@dataclass(frozen=True)
class StageRun:
    """A stage, or one reader's run of it."""

    stage: Stage
    reader: str | None = None

    @property
    def key(self) -> str:
        """``rank``, ``read:minilm-late``: names the run in the workspace."""
        return self.stage.name if self.reader is None else f"{self.stage.name}:{self.reader}"


class Pipeline:
    """One build of one workspace."""

    def __init__(
        self,
        workspace: Workspace,
        settings: Settings,
        sources: Sequence[SourceRef],
        *,
        asked_as: Mapping[str, Any] | None = None,
        decided: int | None = None,
        models: Models | None = None,
    ) -> None:
        """``asked_as``: profile and overrides as the user named them; ``decided``: how many parts of the log of
        overrides count."""
        check_labelers(settings)
        self.asked_as = asked_as
        self.workspace = workspace
        self.settings = settings
        self.sources = tuple(sources)
        self.models = models or Models(settings)
        self.models.on_cache = workspace.keep_replies
        workspace.follow(settings)
        self.decided = len(workspace.log_files("overrides")) if decided is None else decided
        self._whole: dict[tuple[str, ...], pa.Table] = {}
        self._whole_lock = Lock()
        self._turn, self._at_work = Lock(), ""

    @cached_property
    def runs(self) -> list[StageRun]:
        """The stage runs in pipeline order."""
        readers: list[str | None] = [*self.settings.readers_in_order]
        stages = [stage for stage in STAGES if not stage.on_demand or self._economy == "estimated"]
        return [StageRun(stage, reader) for stage in stages for reader in (readers if stage.per_reader else [None])]

    def runs_of(self, stage: Stage) -> list[list[StageRun]]:
        """Return the runs of a stage in groups that run side by side: one by one, or all readers
        (``run.readers_together``), of which one that needs another's answers waits for it."""
        groups: list[list[StageRun]] = []
        for run in self.runs:
            if run.stage is stage:
                together = self.settings.run.readers_together and not self._earlier_labelers(run)
                if together and groups:
                    groups[0].append(run)
                else:
                    groups.append([run])
        return groups

    @property
    def _economy(self) -> str:
        return self.settings.labels.economy

    def _earlier_labelers(self, run: StageRun) -> list[StageRun]:
        """Return the runs of the labelers that are asked before this run's, where it asks only what they leave open
        (``labels.economy``)."""
        labelers = [labeler.name for labeler in self.settings.labelers_in_order]
        if self._economy == "off" or run.stage is not read_stage or run.reader not in labelers:
            return []
        return [StageRun(read_stage, name) for name in labelers[: labelers.index(run.reader)]]

    def makers_of(self, run: StageRun, name: str) -> list[StageRun]:
        """Return the runs before this one whose rows of a table it reads; none for an optional input that it does
        without.

        Optional are, with ``labels.economy``, the earlier labelers' answers for a labeler, and which passages are asked
        for whatever depends on it.
        """
        if name in run.stage.optional and run.stage is read_stage:
            labeler = run.reader in [each.name for each in self.settings.labelers]
            if name != "selection":
                return self._earlier_labelers(run)
            return [each for each in self.runs if each.stage is select_stage and labeler]
        return [each for each in self.runs[: self.runs.index(run)] if name in each.stage.outputs]

    def follows_reviews(self, run: StageRun) -> bool:
        """Whether the applied reviews can change what a run makes: the label update, and with ``labels.economy`` what
        asks about passages whose accepted answer people reject, and all after it."""
        if "decisions" in run.stage.inputs or self._economy == "off":
            return "decisions" in run.stage.inputs
        return bool(self._earlier_labelers(run)) or run.stage.number > read_stage.number

    @cached_property
    def _rejected(self) -> frozenset[tuple[str, str]]:
        """(question id, normalised answer) of the answers that the applied reviews reject."""
        rows = self.decisions.filter(pc.equal(self.decisions.column("decision"), False)).to_pylist()
        return frozenset((row["question_id"], row["key"]) for row in rows if row["kind"] == "answer")

    @property
    def workers(self) -> int:
        """Shards of a run that are worked on at a time: not more than a server may have requests in flight, where
        processes share it."""
        run = self.settings.run
        return (
            run.workers
            if run.runner == "threads"
            else min([run.workers, *(server.concurrency for server in self.settings.servers)])
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
        """What the applied reviews come to (schema ``quit.stages.labelling.verdicts.DECISIONS``)."""
        return decide(ReviewStore(self.workspace).read(self._applied), self.settings.review)

    @cached_property
    def decisions_hash(self) -> str:
        """Hash of the settled decisions and the reviews they rest on."""
        return decisions_hash(self.decisions)

    def stage_run(self, key: str) -> StageRun:
        """Return the stage run of that key (``rank``, ``read:minilm-late``)."""
        return next(run for run in self.runs if run.key == key)

    @cached_property
    def source_checksums(self) -> list[str]:
        """The checksums of the sources as planned. Raises ``InputError`` for one that cannot be read."""
        return [source_checksum(source) for source in self.sources]

    @cached_property
    def fingerprints(self) -> dict[str, str]:
        """Stage run -> fingerprint. Reads the sources once, to hash them; raises ``InputError`` when one cannot be
        read."""
        fingerprints: dict[str, str] = {}
        for run in self.runs:
            stage = run.stage
            inputs: list[Any] = []
            for name in (*stage.inputs, *stage.whole, *stage.optional):
                if name == "sources":
                    inputs += [[source["kind"], source["file"], source["sha256"]] for source in self._source_facts]
                elif name == "decisions":
                    inputs.append([name, self.decisions_hash])
                elif makers := self.makers_of(run, name):
                    inputs.append([name, [fingerprints[maker.key] for maker in makers]])
            inputs += self._economy_of(run)
            if stage.overrides:
                inputs.append(["overrides", decisions(self.overrides_of(stage))])
            columns = [contracts.table(name).shape for name in stage.outputs]
            fingerprints[run.key] = content_hash(
                inputs, stage.name, stage.version, columns, self._settings_of(stage), self._models_of(run), size=8
            )
        return fingerprints

    def _economy_of(self, run: StageRun) -> list[Any]:
        """Return what partial labelling adds to a run's fingerprint: nothing where it changes nothing."""
        labels, stage = self.settings.labels, run.stage
        order = [labeler.name for labeler in self.settings.labelers_in_order]
        if stage is select_stage:
            specs = [reader_identity(labeler, self.settings) for labeler in self.settings.labelers_in_order]
            options = [labels.error, labels.confidence, labels.audit, sorted(labels.exact_splits)]
            return ["economy", options, order, specs, identities(self.settings, ["judge"])]
        if self._earlier_labelers(run):
            return ["economy", identities(self.settings, ["judge"]), sorted(self._rejected)]
        return ["economy", order] if self._economy != "off" and stage is judge_stage else []

    @property
    def _source_facts(self) -> list[dict[str, str]]:
        return [
            {"kind": source.kind, "file": source.path.name, "sha256": checksum}
            for source, checksum in zip(self.sources, self.source_checksums, strict=True)
        ]

    def overrides_of(self, stage: Stage) -> pa.Table:
        """Return the overrides in force that a stage applies, as they were when this build was planned."""
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
        question_ids = self._read_whole("questions").column("question_id").to_pylist()
        wanted = self.settings.run.shards or -(-len(question_ids) // self.settings.run.shard_questions)
        return ranges(question_ids, wanted)

    def pending(self, run: StageRun, *, publish: bool = False) -> list[Range]:
        """Return the shards that are still to do (none if the run is complete, under whatever number of shards)."""
        if self.is_done(run):
            return []
        folder = self.folder(run)
        done = partial(self.workspace.part_done, folder, run.stage.outputs, publish=publish)
        return [shard for shard in self.shards(run) if not done(shard)]

    def missing_inputs(self, run: StageRun) -> list[str]:
        """Return the stage runs before this one whose current tables cannot be seen: none where it may be carried
        out."""
        current = {key: folder.name for key, (folder, _) in self.workspace.current().items()}
        wanted = (*run.stage.inputs, *run.stage.whole, *run.stage.optional)
        makers = {earlier.key: None for name in wanted for earlier in self.makers_of(run, name)}
        return [key for key in makers if current.get(key) != self.fingerprints[key]]

    def check_not_empty(self, run: StageRun) -> None:
        """Raise ``InputError`` where the leakage filter has left no question for a later stage run."""
        filtered = self.workspace.current(["filter"]).get("filter")
        if run.stage.number > 2 and filtered and not filtered[1]["tables"]["usable_hints"]["rows"]:
            asked = self._read_whole("questions").num_rows
            raise InputError(
                f"Nothing is left after the filter: the hints of {'all ' if asked > 1 else ''}"
                f"{counted(asked, 'question')} give the answer away. See: quit status -w {self.workspace} --left-out"
            )

    def work_on(self, run: StageRun, shard: Range) -> int:
        """Carry out one shard of a stage run and write its parts; returns the number of rows of its first table."""
        stage = run.stage
        self._take_turns(run)
        self.workspace.refresh()  # of a worker elsewhere: the stages before this one are finished by now
        optional = [name for name in stage.optional if self.makers_of(run, name)]
        inputs = {name: self._input(run, name, shard) for name in (*stage.inputs, *optional)}
        tables = stage.function(self._context(run), **inputs)
        self.workspace.write_part(self.folder(run), shard, {name: tables[name] for name in stage.outputs})
        return len(tables[stage.outputs[0]])

    def _take_turns(self, run: StageRun) -> None:
        """Release the readers of the run before, where a run begins in this process: no more than one is loaded."""
        with self._turn:
            if run.key != self._at_work and not self.settings.run.readers_together:
                self.models.release_readers(but=run.reader)
            self._at_work = run.key

    def _context(self, run: StageRun) -> Context:
        stage = run.stage
        overrides = self.overrides_of(stage) if stage.overrides else None
        whole = {name: self._read_whole(name) for name in stage.whole}
        rejected = self._rejected if self._economy != "off" else frozenset()
        return Context(whole, self.settings, self.models, run.reader, overrides, rejected)

    def _input(self, run: StageRun, name: str, shard: Range) -> Any:
        """Return an input of a stage run: of a table, the rows of the runs before it, never of a later one that
        supersedes them."""
        if name == "sources":
            return read_sources(self.sources, self.source_checksums)
        if name == "decisions":
            return self.decisions
        makers = [earlier.key for earlier in self.makers_of(run, name)]

        def rows_of(
            columns: Sequence[str], reader: str | None = None, question_ids: Sequence[str] | None = None
        ) -> pa.Table:
            keys = [key for key in makers if reader is None or key.endswith(f":{reader}")]
            if question_ids is None:
                return self.workspace.read(name, shard, keys, columns)
            return self.workspace.read_questions(name, question_ids, columns, keys)

        return rows_of if name in run.stage.in_pieces else self.workspace.read(name, shard, makers)

    def finish(self, run: StageRun) -> None:
        """Mark a stage run as complete and its tables as the current ones."""
        if run.reader is not None:
            self.models.release_readers(only=run.reader)  # others may be at work beside it
        if not self.is_done(run):
            facts: dict[str, Any] = {
                "stage": run.stage.name,
                "reader": run.reader,
                "version": run.stage.version,
                "fingerprint": self.fingerprints[run.key],
                "settings": self._settings_of(run.stage),
                "models": self._models_of(run),
                "supersedes": list(run.stage.supersedes),
            }
            if "sources" in run.stage.inputs:
                facts["sources"] = self._source_facts
            self.workspace.finish(self.folder(run), run.stage.outputs, len(self.shards(run)), facts)
        if not came_out_the_same(self.workspace, self.folder(run)):
            self._discard_what_rests_on(run)
        forget_damage(self.folder(run))  # last: a run that is killed before compares again
        # What is finished further down stays current: a resumed build never shows less than is there.
        known = self.workspace.state.items()
        done = {each.key for each in self.runs if (each.key, self.fingerprints[each.key]) in known} | {run.key}
        self._set_current(done)

    def record_usage(self, name: str, before: dict[str, dict[str, Any]]) -> None:
        """Write down what a stage (or one reader's run) asked of language models since ``before``, a snapshot of their
        meter."""
        with self.workspace.changing("usage.jsonl"):
            record(self.workspace.path, name, before, self.models.meter.snapshot(), self.workers)

    def begin(self) -> None:
        """Remember how the workspace is built, and keep as current only what this build would make again."""
        if self.asked_as is not None:
            profile = str(self.asked_as["profile"])
            profile = str(Path(profile).resolve()) if profile.endswith(".toml") else profile
            sources = [f"{source.kind}:{source.path.resolve()}" for source in self.sources]
            overrides = list(self.asked_as["overrides"])
            self.workspace.set_build({"profile": profile, "overrides": overrides, "sources": sources})
        self._set_current({run.key for run in self.runs if self.is_done(run)})

    def discard_damaged(self) -> list[str]:
        """Remove what is not what the stages of this build wrote, so that they make it again; returns a line a file for
        people.

        Every part of a complete stage is compared with its manifest's checksum. The caller holds the workspace.
        """
        return [
            f"{run.key}: {fault} It is built again."
            for run in self.runs
            for fault in discard_damaged(self.workspace, self.folder(run), run.stage.outputs)
        ]

    def _set_current(self, done: set[str]) -> None:
        self.workspace.set_current({run.key: self.fingerprints[run.key] for run in self.runs if run.key in done})

    def _discard_what_rests_on(self, changed: StageRun) -> None:
        """Remove the tables of later stages that were made from parts which are gone: their fingerprint cannot tell."""
        tables = {*changed.stage.outputs}
        for run in self.runs[self.runs.index(changed) + 1 :]:
            if tables & {*run.stage.inputs, *run.stage.optional, *run.stage.whole}:
                tables |= {*run.stage.outputs}
                self.workspace.discard(self.folder(run))

    def with_reviews_of_now(self) -> Pipeline:
        """Return this build with the reviews that are applied now; models, sources and overrides stay as planned."""
        pipeline = Pipeline(
            self.workspace,
            self.settings,
            self.sources,
            asked_as=self.asked_as,
            decided=self.decided,
            models=self.models,
        )
        pipeline.source_checksums = self.source_checksums
        return pipeline

    def _read_whole(self, name: str) -> pa.Table:
        """Return a whole table, remembered as long as its makers' fingerprints are current."""
        makers = [run.key for run in self.runs if name in run.stage.outputs]
        key = (name, *(self.fingerprints[maker] for maker in makers))
        with self._whole_lock:
            if key not in self._whole:
                self._whole[key] = self.workspace.read(name)
            return self._whole[key]

    def _settings_of(self, stage: Stage) -> dict[str, Any]:
        whole = self.settings.model_dump(mode="json")
        sections: dict[str, Any] = {}
        for section in stage.sections:
            value: Any = whole
            for step in section.split("."):
                value = value[step]
            if isinstance(value, dict):
                value = {key: setting for key, setting in value.items() if f"{section}.{key}" not in IN_IDENTITIES}
            if section == "split" and value["pinned"]:
                value["pinned"] = content_hash("pins", read_pins(value["pinned"]))  # what it says, not where it lies
            sections[section] = value
        return sections

    def _models_of(self, run: StageRun) -> list[str]:
        models: list[str] = []
        for name in run.stage.models:
            if name == "labelers":
                models += [labeler.name for labeler in self.settings.labelers]
            elif name == "reader":
                spec = next(reader for reader in self.settings.readers if reader.name == run.reader)
                models.append(reader_identity(spec, self.settings))
            else:
                models += identities(self.settings, [name])
        return models


def check_labelers(settings: Settings) -> None:
    """Raise ``SettingsError`` for settings that can label nothing."""
    if not settings.labelers:
        raise SettingsError(
            "The profile names no reader with role 'labeler'; labels need at least one. Profiles do not inherit: "
            "start from a complete copy, such as: quit settings --profile embedded --toml > mine.toml"
        )
    if settings.labels.economy == "estimated" and settings.convergence.hints > MAX_HINTS:
        raise SettingsError(
            f"labels.economy = 'estimated' takes up to {MAX_HINTS} hints, not {settings.convergence.hints}: the "
            "passages of a question are compared in pairs. Set convergence.hints lower, or labels.economy=exact."
        )


_COMMIT = re.compile(r"[0-9a-f]{40}")


def check_buildable(settings: Settings) -> None:
    """Raise ``SettingsError`` for settings that can label nothing, or leave open what only the user can give."""
    check_labelers(settings)
    models = settings.models
    from_hub = models.equivalence == "bem" and not Path(models.bem_checkpoint).expanduser().is_dir()
    if settings.leakage.method == "bem" and from_hub and not _COMMIT.fullmatch(models.bem_revision):
        raise SettingsError(
            f"models.bem_revision is {models.bem_revision!r}, which may move to other weights. Set a commit of "
            f"{models.bem_checkpoint} (40 hexadecimal digits, on its page of the hub under 'Files', 'History'): "
            "--set models.bem_revision=COMMIT; or set models.bem_checkpoint to a local folder."
        )
    if settings.difficulty.counts == "containment" and not settings.difficulty.corpus:
        raise SettingsError(
            "difficulty.corpus is not set, and difficulty.counts = 'containment' needs one: hints are chosen not to "
            "contain the answer. Set --set difficulty.corpus=FILE (JSONL of {id, text}, such as Wikipedia's passages), "
            "or --set difficulty.counts=nearness."
        )

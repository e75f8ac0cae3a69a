"""A build carried out, one shard of a stage run at a time, without a scheduler.

A stage run with a manifest under its fingerprint is done; one with some parts is resumed at the first missing one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property, partial
from threading import Lock
from typing import Any

import pyarrow as pa

from quit.common.faults import is_too_little_memory
from quit.common.files import files_below, writing
from quit.common.progress import note
from quit.common.ranges import WHOLE, Range, ranges
from quit.common.retries import with_retries
from quit.engine.plan import BuildPlan, StageRun
from quit.engine.questions import check_questions
from quit.engine.repair import clear_damage_marker, discard_damaged, rebuilt_identically
from quit.engine.request import Request
from quit.engine.usage import record
from quit.engine.workspace import Workspace
from quit.errors import InputError, WorkspaceError
from quit.models.factory import Models
from quit.models.generation.meter import Count
from quit.settings import Settings
from quit.sources import SourceRef, read_sources
from quit.stages.collect import collect_stage
from quit.stages.labelling.design import check_hint_counts
from quit.stages.stage import Context, Tables
from quit.text.words import counted, shell_word

_LEAVING = {
    "filter": ("usable_hints", "the hints of {} give the answer away."),
    "split": (
        "splits",
        "no question belongs to train, dev or test. Look at split.method, split.train and the sizes or shares.",
    ),
}
"""Stages that may leave no question for later ones: the table that is then empty, and why, with the questions."""


class Pipeline(BuildPlan):
    """One build of one workspace, with its models loaded as they are needed."""

    def __init__(
        self,
        workspace: Workspace,
        settings: Settings,
        sources: Sequence[SourceRef],
        *,
        requested: Request | None = None,
        models: Models | None = None,
        replace: bool = False,
    ) -> None:
        """``requested``: profile and overrides as the user named them; ``replace``: whether reviewed questions may
        leave the workspace."""
        super().__init__(workspace, settings, sources)
        self.requested = requested
        self.models = models or Models(settings)
        self._replace = replace
        self._whole: dict[tuple[str, ...], pa.Table] = {}
        self._whole_lock = Lock()
        self._turn, self._at_work = Lock(), ""

    # What remains

    def is_done(self, run: StageRun) -> bool:
        """Whether the stage run has its manifest, and was made from the tables that the runs before it have now.

        A language model that was asked again gives other tables under the same fingerprint, also while a build with
        other settings was current. A run before it without tables says nothing: it may come out as it was.
        """
        manifest = self.workspace.manifest(self.folder(run))
        if manifest is None:
            return False
        recorded, versions = manifest.get("inputs", {}), self._input_versions(run)
        return all(recorded.get(key, version) == version for key, version in versions.items())

    def _input_versions(self, run: StageRun) -> dict[str, str]:
        """Return the complete stage runs whose tables a run reads, each with the version of its tables."""
        versions = {each.key: self.workspace.version(self.folder(each)) for each in self.reads(run)}
        return {key: version for key, version in versions.items() if version is not None}

    def discard_stale(self, run: StageRun) -> None:
        """Remove the tables of a complete run that rest on other tables than there are now, its manifest last: killed
        before, the run is still seen to be stale, and what is left of its parts is not taken for new."""
        folder = self.folder(run)
        if not self.is_done(run) and self.workspace.manifest(folder) is not None:
            self.workspace.remove(folder, [path for path in files_below(folder) if path.name != "manifest.json"])
            self.workspace.discard(folder)

    @property
    def left_to_do(self) -> list[StageRun]:
        """The stage runs that are not done, in their order."""
        return [run for run in self.runs if not self.is_done(run)]

    def is_current(self, run: StageRun) -> bool:
        """Whether the stage run is done, and its tables are the workspace's."""
        return self.workspace.state.get(run.key) == self.fingerprints[run.key] and self.is_done(run)

    @property
    def up_to_date(self) -> bool:
        """Whether nothing has to run."""
        return self.workspace.state == self.fingerprints and not self.left_to_do

    def shards(self, run: StageRun) -> list[Range]:
        """Return the shards of a stage run: contiguous ranges of the collection's sorted question ids."""
        if run.stage.scope == "collection":
            return [WHOLE]
        question_ids = self._question_ids()
        size = self.settings.run.shard_questions * run.stage.shard_factor
        count = self.settings.run.shards or -(-len(question_ids) // size)
        return ranges(question_ids, count)

    def _question_ids(self) -> list[str]:
        return self.workspace.read("questions", columns=["question_id"]).column("question_id").to_pylist()

    def pending(self, run: StageRun) -> list[Range]:
        """Return the shards that are still to do (none if the run is complete, under whatever number of shards)."""
        if self.is_done(run):
            return []
        folder = self.folder(run)
        done = partial(self.workspace.part_done, folder, run.stage.outputs)
        return [shard for shard in self.shards(run) if not done(shard)]

    def missing_inputs(self, run: StageRun) -> list[str]:
        """Return the earlier stage runs whose tables this one reads and that are not current; none if it can run."""
        current = {key: folder.name for key, (folder, _) in self.workspace.current().items()}
        return [each.key for each in self.reads(run) if current.get(each.key) != self.fingerprints[each.key]]

    def check_ready(self, run: StageRun) -> None:
        """Raise ``WorkspaceError`` where the tables that a stage run reads are not current, and what
        :meth:`check_not_empty` raises."""
        if missing := self.missing_inputs(run):
            raise WorkspaceError(
                f"{run.key} cannot run: the tables of {', '.join(missing)} are not those of this build. "
                f"Run: quit build -w {shell_word(self.workspace)}"
            )
        self.check_not_empty(run)

    def check_not_empty(self, run: StageRun) -> None:
        """Raise ``InputError`` where an earlier stage has left no question for a stage run."""
        earlier = [each.key for each in self.runs[: self.runs.index(run)] if each.key in _LEAVING]
        for stage, (_, manifest) in self.workspace.current(earlier).items():
            table, reason = _LEAVING[stage]
            if not manifest["tables"][table]["rows"]:
                questions = counted(len(self._question_ids()), "question")
                raise InputError(
                    f"Nothing is left after the {stage}: {reason.format(questions)} See: quit status -w "
                    f"{shell_word(self.workspace)} --left-out"
                )

    def discard_damaged(self) -> list[str]:
        """Remove missing or altered parts, so that their stages make them again; returns one line per file for people.

        Every part of a complete stage is compared with its manifest's checksum. A stale run keeps no part. The caller
        holds the workspace.
        """
        lines: list[str] = []
        for run in self.runs:
            with suppress(WorkspaceError):  # a damaged manifest says not what the run rests on
                self.discard_stale(run)
            faults = discard_damaged(self.workspace, self.folder(run), run.stage.outputs)
            lines += [f"{run.key}: {fault} It is built again." for fault in faults]
        return lines

    def discard_dependents(self, changed: StageRun) -> None:
        """Remove the tables of later stages that were made from removed parts; their fingerprints stay the same."""
        discarded = {changed}
        for run in self.runs:
            if not discarded.isdisjoint(self.reads(run)):
                discarded.add(run)
                self.workspace.discard(self.folder(run))

    # Carrying out

    def begin(self) -> None:
        """Remember how the workspace is built, and keep as current only what this build would make again.

        Where the questions may be others than those of the workspace, that waits until they are collected
        (:meth:`finish`).

        Raises ``SettingsError`` where ranked hints make no passages, or too many: before a model is asked.
        """
        if self.is_current(self.stage_run("rank")):  # else it says so itself
            rows = self.workspace.read("ranked_hints", columns=["question_id"])
            check_hint_counts(rows["question_id"], self.settings.passages)
        if not self._changes_questions:
            self._remember()

    @property
    def _changes_questions(self) -> bool:
        return self.workspace.state.get(collect_stage.name) not in (None, self.fingerprints[collect_stage.name])

    def _remember(self) -> None:
        if self.requested is not None:
            profile, overrides = self.requested.profile, self.requested.overrides
            sources = [str(source) for source in self.sources]
            self.workspace.set_build({"profile": profile, "overrides": overrides, "sources": sources})
        self._set_current({run.key for run in self.runs if self.is_done(run)})

    def run_shard(self, run: StageRun, shard: Range, function: Callable[..., Tables] | None = None) -> None:
        """Run one shard of a stage run and write its parts.

        A fault of this system is retried (``run.retries``), except too little memory; clients of servers have retries
        of their own.

        ``function``: called in place of the stage's, with the same arguments: it runs that on Ray. Raises the last
        fault.
        """
        stage, settings = run.stage, self.settings.run

        def work() -> None:
            self._release_previous_reader(run)
            optional = [name for name in stage.optional if self.producers_of(run, name)]
            inputs = {name: self._input(run, name, shard) for name in (*stage.inputs, *optional)}
            tables = stage.run(self._context(run), inputs, function)
            self.workspace.write_part(self.folder(run), shard, {name: tables[name] for name in stage.outputs})

        def helps(error: Exception) -> bool:
            return isinstance(error, OSError) and not is_too_little_memory(error)

        with_retries(work, settings.retries, settings.retry_seconds, helps, partial(note, loud=True))

    def _release_previous_reader(self, run: StageRun) -> None:
        """Unload the previous run's reader when another run starts, so that one reader is loaded at a time."""
        with self._turn:
            if run.key != self._at_work and not self.settings.run.parallel_readers:
                self.models.release_readers(but=run.reader)
            self._at_work = run.key

    def _context(self, run: StageRun) -> Context:
        stage = run.stage
        overrides = self.overrides_of(stage) if stage.overrides else None
        whole = {name: self._read_whole(name) for name in stage.whole}
        rejected = self.reviews.rejected if self.depends_on_rejected_answers(run) else frozenset()
        return Context(whole, self.settings, self.models, run.reader, overrides, rejected)

    @cached_property
    def _current_decisions(self) -> pa.Table:
        """The fitting decisions; says how many others there are."""
        current = self.reviews.fitting_decisions
        if others := len(self.reviews.decisions) - len(current):
            note(
                f"{counted(others, 'decision of people is', 'decisions of people are')} set aside: what they saw of "
                "the question (text, gold answers, for some flags hints) has changed. See: quit review status",
                loud=True,
            )
        return current

    def _read_whole(self, name: str) -> pa.Table:
        """Return a whole table, remembered as long as its producers' fingerprints are current."""
        producers = [run.key for run in self.runs if name in run.stage.outputs]
        key = (name, *(self.fingerprints[producer] for producer in producers))
        with self._whole_lock:
            if key not in self._whole:
                self._whole[key] = self.workspace.read(name)
            return self._whole[key]

    def _input(self, run: StageRun, name: str, shard: Range) -> Any:
        """Return an input of a stage run: of a table, the rows of the runs before it, never of a later one that
        supersedes them."""
        if name == "sources":
            return read_sources(self.sources, self.source_checksums)
        if name == "decisions":
            with self._whole_lock:
                return self._current_decisions
        producers = [earlier.key for earlier in self.producers_of(run, name)]

        def rows_of(
            columns: Sequence[str], reader: str | None = None, question_ids: Sequence[str] | None = None
        ) -> pa.Table:
            keys = [key for key in producers if reader is None or key.endswith(f":{reader}")]
            return self.workspace.read(name, shard, keys, columns, question_ids)

        return rows_of if name in run.stage.lazy_inputs else self.workspace.read(name, shard, producers)

    def finish(self, run: StageRun) -> None:
        """Mark a stage run as complete and its tables as the current ones.

        Raises ``WorkspaceError`` where reviewed questions would leave; nothing is changed then.
        """
        if run.stage is collect_stage and self._changes_questions:
            check_questions(self.workspace, self.folder(run), self.source_facts, self._replace)
            self._remember()
        if run.reader is not None:
            self.models.release_readers(only=run.reader)  # others may be at work beside it
        pa.system_memory_pool().release_unused()
        if not self.is_done(run):
            facts: dict[str, Any] = {
                "stage": run.stage.name,
                "reader": run.reader,
                "version": run.stage.version,
                "fingerprint": self.fingerprints[run.key],
                "settings": self.settings_of(run.stage),
                "models": self.models_of(run),
                "supersedes": list(run.stage.supersedes),
                "inputs": self._input_versions(run),
            }
            if "sources" in run.stage.inputs:
                facts["sources"] = self.source_facts
            self.workspace.finish(self.folder(run), run.stage.outputs, len(self.shards(run)), facts)
        if not rebuilt_identically(self.workspace, self.folder(run)):
            self.discard_dependents(run)
        clear_damage_marker(self.folder(run))  # last: a run that is killed before compares again
        # Later runs that are finished stay current, so a resumed build never shows less than there is.
        state = self.workspace.state.items()
        keys = {each.key for each in self.runs if (each.key, self.fingerprints[each.key]) in state} | {run.key}
        self._set_current(keys)

    def record_usage(self, name: str, before: dict[str, Count]) -> dict[str, Count]:
        """Log the use of language models by a stage run (or all of a stage) since the snapshot ``before``; returns that
        of now."""
        now = self.models.meter.snapshot()
        with writing(self.workspace.path / "usage.jsonl"):
            record(self.workspace.path, name, before, now, self.settings)
        return now

    def _set_current(self, keys: set[str]) -> None:
        self.workspace.set_current({run.key: self.fingerprints[run.key] for run in self.runs if run.key in keys})

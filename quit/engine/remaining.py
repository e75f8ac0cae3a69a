"""What of a build is done, damaged or still to do: a stage run with a manifest under its fingerprint is done, one with
some parts is resumed at the first missing one."""

from __future__ import annotations

from functools import partial

from quit.common.ranges import WHOLE, Range, ranges
from quit.engine.damage import discard_damaged
from quit.engine.plan import Plan, StageRun
from quit.errors import InputError, WorkspaceError
from quit.text.words import counted


class Remaining(Plan):
    """One build of one workspace, compared with the workspace's tables."""

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
        question_ids = self._question_ids()
        wanted = self.settings.run.shards or -(-len(question_ids) // self.settings.run.shard_questions)
        return ranges(question_ids, wanted)

    def _question_ids(self) -> list[str]:
        return self.workspace.read("questions", columns=["question_id"]).column("question_id").to_pylist()

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
        return [each.key for each in self.reads(run) if current.get(each.key) != self.fingerprints[each.key]]

    def check_ready(self, run: StageRun) -> None:
        """Raise ``WorkspaceError`` where the tables that a stage run reads are not current, and what
        :meth:`check_not_empty` raises."""
        if missing := self.missing_inputs(run):
            raise WorkspaceError(
                f"{run.key} cannot run: the tables of {', '.join(missing)} are not those of this build. "
                f"Run: quit build -w {self.workspace}"
            )
        self.check_not_empty(run)

    def check_not_empty(self, run: StageRun) -> None:
        """Raise ``InputError`` where the leakage filter has left no question for a later stage run."""
        filtered = self.workspace.current(["filter"]).get("filter")
        if run.stage.number > 2 and filtered and not filtered[1]["tables"]["usable_hints"]["rows"]:
            asked = len(self._question_ids())
            raise InputError(
                f"Nothing is left after the filter: the hints of {'all ' if asked > 1 else ''}"
                f"{counted(asked, 'question')} give the answer away. See: quit status -w {self.workspace} --left-out"
            )

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

    def discard_what_rests_on(self, changed: StageRun) -> None:
        """Remove the tables of later stages that were made from parts which are gone: their fingerprint cannot tell."""
        discarded = {changed}
        for run in self.runs:
            if not discarded.isdisjoint(self.reads(run)):
                discarded.add(run)
                self.workspace.discard(self.folder(run))

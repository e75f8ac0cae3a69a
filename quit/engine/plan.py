"""A build as declared: its stage runs, their inputs and fingerprints.

A stage run's fingerprint is a hash of its inputs' fingerprints, its stage's name and version, its tables' columns, the
settings it reads and the identities of its models. Fingerprints follow from sources, settings, overrides and applied
reviews, so a plan has them before anything runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from pathlib import Path
from typing import Any

import pyarrow as pa

from quit import contracts
from quit.common.ids import content_hash
from quit.engine.applied import AppliedReviews
from quit.engine.logs import Log, contents, in_force
from quit.engine.workspace import Workspace
from quit.errors import SettingsError
from quit.settings import Settings
from quit.settings.section import IN_IDENTITIES, Section
from quit.sources import SourceRef, source_checksum
from quit.stages.identities import identities, reader_identity
from quit.stages.labelling.strategy import LabellingStrategy
from quit.stages.order import STAGES
from quit.stages.stage import Stage


@dataclass(frozen=True)
class StageRun:
    """A stage, or one reader's run of it."""

    stage: Stage
    reader: str | None = None

    @property
    def key(self) -> str:
        """``rank``, ``read:minilm-late``: names the run in the workspace."""
        return self.stage.name if self.reader is None else f"{self.stage.name}:{self.reader}"


class BuildPlan:
    """One build of one workspace, as declared."""

    def __init__(self, workspace: Workspace, settings: Settings, sources: Sequence[SourceRef]) -> None:
        check_labelers(settings)
        self.workspace = workspace
        self.settings = settings
        self.strategy = LabellingStrategy(settings)
        self.sources = tuple(sources)
        self.reviews = AppliedReviews(workspace, settings.review)
        self._override_parts = len(Log(workspace, "overrides").files)  # those that come later do not count

    @cached_property
    def runs(self) -> list[StageRun]:
        """The stage runs in pipeline order."""
        readers: list[str | None] = [*self.strategy.readers]
        return [StageRun(stage, reader) for stage in STAGES for reader in (readers if stage.per_reader else [None])]

    def runs_of(self, stage: Stage) -> list[list[StageRun]]:
        """Return the runs of a stage in groups that may run in parallel: one run each; with ``run.parallel_readers``
        all readers are a group, except those that need another's answers."""
        groups: list[list[StageRun]] = []
        for run in self.runs:
            if run.stage is stage:
                if groups and self.settings.run.parallel_readers and {*groups[0]}.isdisjoint(self.reads(run)):
                    groups[0].append(run)
                else:
                    groups.append([run])
        return groups

    def producers_of(self, run: StageRun, name: str) -> list[StageRun]:
        """Return the runs before this one whose rows of a table it reads, from the last that supersedes it; none for an
        optional input that it does without."""
        producers = [each for each in self.runs[: self.runs.index(run)] if name in each.stage.outputs]
        start = max((at for at, each in enumerate(producers) if name in each.stage.supersedes), default=0)
        producers = producers[start:]
        if run.reader and name in run.stage.optional:
            deciding = self.strategy.earlier_labelers(run.reader)
            producers = [each for each in producers if each.reader in deciding]
        return producers

    def reads(self, run: StageRun) -> list[StageRun]:
        """Return the runs whose tables a run reads, each once."""
        names = (*run.stage.inputs, *run.stage.whole, *run.stage.optional)
        return list(dict.fromkeys(producer for name in names for producer in self.producers_of(run, name)))

    def depends_on_rejected_answers(self, run: StageRun) -> bool:
        """Whether a run asks about passages whose accepted answer people reject."""
        return bool(run.stage.optional and self.strategy.earlier_labelers(run.reader))

    @cached_property
    def review_dependent_runs(self) -> list[StageRun]:
        """The runs that applied reviews can change: labelers asked again about rejected answers, all that read their
        tables, and the label update."""
        runs: list[StageRun] = []
        for run in self.runs:
            direct = "decisions" in run.stage.inputs or self.depends_on_rejected_answers(run)
            if direct or not {*runs}.isdisjoint(self.reads(run)):
                runs.append(run)
        return runs

    def stage_run(self, key: str) -> StageRun:
        """Return the stage run of that key (``rank``, ``read:minilm-late``). Raises ``KeyError`` for another."""
        return {run.key: run for run in self.runs}[key]

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
                    inputs += [[source["kind"], source["file"], source["sha256"]] for source in self.source_facts]
                elif name == "decisions":
                    inputs.append([name, self.reviews.hash])
                elif producers := self.producers_of(run, name):
                    inputs.append([name, [fingerprints[producer.key] for producer in producers]])
            inputs += stage.also(self.settings, run.reader)
            if self.depends_on_rejected_answers(run):
                inputs.append(sorted(self.reviews.rejected))
            if stage.overrides:
                inputs.append(["overrides", contents(self.overrides_of(stage))])
            columns = [contracts.table(name).shape for name in stage.outputs]
            fingerprints[run.key] = content_hash(
                inputs, stage.name, stage.version, columns, self.settings_of(stage), self.models_of(run), size=8
            )
        return fingerprints

    @property
    def source_facts(self) -> list[dict[str, str]]:
        """``kind``, ``file`` and ``sha256`` of each source."""
        return [
            {"kind": source.kind, "file": source.path.name, "sha256": checksum}
            for source, checksum in zip(self.sources, self.source_checksums, strict=True)
        ]

    def overrides_of(self, stage: Stage) -> pa.Table:
        """Return the overrides in force that a stage applies, as they were when this build was planned."""
        log = Log(self.workspace, "overrides")
        return in_force(log.read(log.files[: self._override_parts]), stage.overrides)

    def folder(self, run: StageRun) -> Path:
        """Return the folder of a stage run's tables."""
        return self.workspace.folder(run.key, run.stage.number, self.fingerprints[run.key])

    def settings_of(self, stage: Stage) -> dict[str, Any]:
        """Return the sections of the settings that a stage reads, as its fingerprint and manifest have them."""
        sections: dict[str, Any] = {}
        for section in stage.sections:
            value: Any = reduce(getattr, section.split("."), self.settings)
            if isinstance(value, Section):
                fields = type(value).model_fields
                elsewhere = {key for key, field in fields.items() if IN_IDENTITIES in field.metadata}
                value = value.model_dump(mode="json", exclude=elsewhere)
                for key, setting in value.items():
                    if setting and (content_of := stage.contents.get(f"{section}.{key}")):
                        value[key] = content_of(setting)
            sections[section] = value
        return sections

    def models_of(self, run: StageRun) -> list[str]:
        """Return the identities of the models that a stage run asks."""
        return models_of(run.stage, run.reader, self.settings)


def models_of(stage: Stage, reader: str | None, settings: Settings) -> list[str]:
    """Return the identities of the models that a stage asks."""
    models: list[str] = []
    for name in stage.models:
        if name == "labelers":
            models += [labeler.name for labeler in settings.labelers]
        elif name == "reader":
            spec = next(spec for spec in settings.readers if spec.name == reader)
            models.append(reader_identity(spec, settings))
        else:
            models += identities(settings, [name])
    return models


def check_labelers(settings: Settings) -> None:
    """Raise ``SettingsError`` for settings that can label nothing."""
    if not settings.labelers:
        raise SettingsError(
            "The profile names no reader with role 'labeler'; labels need at least one. Name one under [[readers]], "
            "or start from a copy: quit settings --profile embedded --toml > mine.toml"
        )

"""Partial labelling: about which passages the labelers are asked, and what follows from that for stages and plans.

Nothing else reads ``labels.partial``. A table that results says so itself (``answers.asked``).
"""

from __future__ import annotations

from typing import Any

from quit.errors import SettingsError
from quit.settings import ReaderSettings, Settings
from quit.stages.identities import identities


class AllPassages:
    """Every labeler is asked about every passage (``off``, the paper).

    ``in_turn``: whether labelers are asked one after the other, each about the passages that earlier ones leave open.
    """

    in_turn = False

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    @property
    def labelers(self) -> list[ReaderSettings]:
        """The labelers in the order of ``labels.order``, else that of the profile."""
        by_name = {labeler.name: labeler for labeler in self.settings.labelers}
        return [by_name[name] for name in self.settings.labels.order or by_name]

    @property
    def readers(self) -> list[str]:
        """The names of all readers in the order in which they read."""
        return [reader.name for reader in self.settings.readers]

    def check(self) -> None:
        """Raise ``SettingsError`` for settings with which it cannot label."""

    def earlier_labelers(self, reader: str | None) -> list[str]:
        """Return the labelers whose correct answers spare a reader passages."""
        return []

    def deciding_runs(self, reader: str | None) -> list[str]:
        """Return the keys of the stage runs that decide about which passages a reader is asked."""
        return [f"read:{name}" for name in self.earlier_labelers(reader)]

    def fingerprint_parts(self, stage: str, reader: str | None) -> list[Any]:
        """Return the parts of a stage run's fingerprint that this strategy adds."""
        return []


class Exact(AllPassages):
    """Each labeler is asked only about passages at label 1 so far; the labels are those of :class:`AllPassages`."""

    in_turn = True

    @property
    def readers(self) -> list[str]:
        """The names of the labelers in their order, then of the other readers."""
        return list(dict.fromkeys([*self._names, *super().readers]))

    @property
    def _names(self) -> list[str]:
        return [labeler.name for labeler in self.labelers]

    def check(self) -> None:
        """Raise ``SettingsError`` where replies of language models are not kept."""
        if self.settings.replying_models and not self.settings.run.generation_cache:
            raise SettingsError(
                f"labels.partial = {self.settings.labels.partial!r} asks language models in several steps and needs "
                "run.generation_cache = true, so that no reply is paid for twice."
            )

    def earlier_labelers(self, reader: str | None) -> list[str]:
        """Return the labelers before a labeler."""
        return self._names[: self._names.index(reader)] if reader in self._names else []

    def fingerprint_parts(self, stage: str, reader: str | None) -> list[Any]:
        """Return the order of the labelers for the judge, and the judge for labelers that depend on its verdicts."""
        if stage == "judge":
            return ["partial", self._names]
        depends = stage == "read" and self.earlier_labelers(reader)
        return ["partial", identities(self.settings, ["judge"])] if depends else []


_STRATEGIES = {"off": AllPassages, "exact": Exact}


def labelling_strategy(settings: Settings) -> AllPassages:
    """Return the strategy that ``labels.partial`` names."""
    return _STRATEGIES[settings.labels.partial](settings)

"""Partial labelling: about which passages the labelers are asked, and what follows from that for stages and plans.

Nothing else reads ``labels.partial``. A table that results says so itself (``answers.asked``).
"""

from __future__ import annotations

from dataclasses import dataclass

from quit.settings import Settings
from quit.stages.identities import identities


@dataclass(frozen=True)
class LabellingStrategy:
    """Every labeler is asked about every passage (``off``, the paper), or ``in_turn`` (``exact``): each only about the
    passages that are at label 1 so far. The labels are the same."""

    settings: Settings

    @property
    def in_turn(self) -> bool:
        """Whether labelers are asked one after the other."""
        return self.settings.labels.partial == "exact"

    @property
    def labelers(self) -> list[str]:
        """The names of the labelers, in the order of the profile."""
        return [labeler.name for labeler in self.settings.labelers]

    @property
    def readers(self) -> list[str]:
        """The names of all readers in the order in which they read: ``in_turn`` the labelers first."""
        names = [reader.name for reader in self.settings.readers]
        return list(dict.fromkeys([*self.labelers, *names])) if self.in_turn else names

    def earlier_labelers(self, reader: str | None) -> list[str]:
        """Return the labelers whose correct answers spare a reader passages."""
        if not self.in_turn or reader not in self.labelers:
            return []
        return self.labelers[: self.labelers.index(reader)]

    def judge_parts(self) -> list[str | list[str]]:
        """Return what the judge's fingerprint has of this strategy: the order of the labelers."""
        return ["partial", self.labelers] if self.in_turn else []

    def reader_parts(self, reader: str | None) -> list[str | list[str]]:
        """Return what a reader's fingerprint has of it: the judge, where the reader depends on its verdicts."""
        return ["partial", identities(self.settings, ["judge"])] if self.earlier_labelers(reader) else []

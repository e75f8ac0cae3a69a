"""Contiguous ranges of sorted question ids: what a shard is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Range:
    """A shard: the questions with ``first <= question_id < end`` (None: no bound), number ``index`` of ``count``."""

    index: int
    count: int
    first: str | None = None
    end: str | None = None

    def misses(self, first: str | None, last: str | None) -> bool:
        """Whether no id between ``first`` and ``last`` lies in this range."""
        if first is None or last is None:
            return True
        return (self.first is not None and last < self.first) or (self.end is not None and first >= self.end)


WHOLE = Range(0, 1)


def ranges(question_ids: Sequence[str], count: int) -> list[Range]:
    """Cut sorted ids into ``count`` contiguous ranges of nearly equal length (fewer, if there are fewer questions)."""
    count = max(1, min(count, len(question_ids)))
    cuts = [question_ids[len(question_ids) * index // count] for index in range(1, count)]
    bounds = [None, *cuts, None]
    return [Range(index, count, bounds[index], bounds[index + 1]) for index in range(count)]

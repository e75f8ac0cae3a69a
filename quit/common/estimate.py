"""How far a long job is, and how long it still takes at the pace it has had since it began or was resumed."""

from __future__ import annotations

import time
from collections.abc import Callable


class Estimate:
    """Counts towards ``total``; ``done``: what an earlier run had finished, which says nothing about today's pace."""

    def __init__(self, total: int, done: int = 0, clock: Callable[[], float] = time.monotonic) -> None:
        self._total, self._first = total, done
        self._clock = clock
        self._began = clock()

    def at(self, done: int) -> str:
        """Return ``12 of 100, 3.5 min left``; without the time before anything is done and at the end."""
        progress = f"{done:,} of {self._total:,}"
        finished, left = done - self._first, self._total - done
        if finished <= 0 or left <= 0:
            return progress
        seconds = (self._clock() - self._began) / finished * left
        return f"{progress}, {seconds:.0f} s left" if seconds < 60 else f"{progress}, {seconds / 60:.1f} min left"

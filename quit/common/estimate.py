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
        """Return ``12 of 100, 3:30 left``; without the time before anything is done and at the end."""
        progress = f"{done:,} of {self._total:,}"
        finished, remaining = done - self._first, self._total - done
        if finished <= 0 or remaining <= 0:
            return progress
        return f"{progress}, {span((self._clock() - self._began) / finished * remaining)} left"


def span(seconds: float) -> str:
    """Return a time as a clock shows it.

    >>> span(59.6), span(3_725)
    ('1:00', '1:02:05')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"

"""How long the rest of a build takes, learnt from what its stages have taken so far."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

TIMES = {
    "collect": 0.5,
    "filter": 12.0,
    "rank": 5.0,
    "describe": 1.6,
    "probe": 0.7,
    "split": 0.1,
    "enumerate": 0.1,
    "select": 4.0,
    "read": 1.4,
    "judge": 0.2,
    "label": 0.1,
    "update": 0.1,
}
"""Seconds that stages (probe and read: each reader) take for the starter collection on two cores; their proportions
count, and only for stages that were not seen yet."""


@dataclass
class _Seen:
    """One stage run that has begun: when, how many shards it had then, how many it has now, of how many."""

    begun: float
    before: int
    done: int
    count: int
    last: float


class Forecast:
    """Listens to shards and says how much is done and left; one thread may listen while another one asks.

    ``runs``: stage run -> what it is like (``read, server``): a run that has not begun is taken to last as long as the
    finished ones that are like it. Where there is none, it takes its share of :data:`TIMES` of what finished runs took,
    except runs in ``unlike``, such as language models without a finished shard.
    """

    def __init__(
        self, runs: Mapping[str, str], unlike: frozenset[str] = frozenset(), clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._runs, self._unlike, self._clock = dict(runs), unlike, clock
        self._began = clock()
        self._seen: dict[str, _Seen] = {}

    def see(self, run: str, done: int, count: int) -> None:
        """Note that ``done`` of ``count`` shards of a run are done."""
        now = self._clock()
        seen = self._seen.setdefault(run, _Seen(now, done, done, count, now))
        seen.done, seen.count, seen.last = done, count, now

    @property
    def finished(self) -> int:
        """Stage runs that are done, of those that had something to do."""
        return sum(seen.done == seen.count for seen in list(self._seen.values()))

    def left(self) -> float | None:
        """Return the seconds that are left, None while that cannot be known."""
        at_work, waiting = [0.0], 0.0
        for run in self._runs:
            seen = self._seen.get(run)
            if seen is None:
                whole = self._whole(run)
                if whole is None:
                    return None
                waiting += whole
            elif seen.done < seen.count:
                rest = self._rest(run, seen)
                if rest is None:
                    return None
                at_work.append(rest)
        return max(at_work) + waiting  # runs that have begun go on side by side

    def share(self) -> float:
        """Return the share of the time that has passed, 0 to 1; of the stage runs that are done where that is not
        known."""
        passed, left = self._clock() - self._began, self.left()
        if left is None:
            return self.finished / len(self._runs) if self._runs else 1.0
        return passed / (passed + left) if passed + left else 0.0

    def _rest(self, run: str, seen: _Seen) -> float | None:
        passed = self._clock() - seen.begun
        if seen.done > seen.before:
            each = (seen.last - seen.begun) / (seen.done - seen.before)
            return max(each * (seen.count - seen.done) - (self._clock() - seen.last), 0.0)
        whole = self._whole(run)
        return None if whole is None else max(whole * (1 - seen.before / seen.count) - passed, 0.0)

    def _whole(self, run: str) -> float | None:
        """Return how long a run takes that has not shown it yet."""
        took = {
            other: (seen.last - seen.begun) * seen.count / (seen.count - seen.before)
            for other, seen in list(self._seen.items())
            if seen.done == seen.count > seen.before
        }
        alike = [seconds for other, seconds in took.items() if self._runs.get(other) == self._runs[run]]
        if alike:
            return sum(alike) / len(alike)
        others = [other for other in took if self._runs.get(other) not in self._unlike]
        if self._runs[run] in self._unlike or not others:
            return None
        return time_of(run) * sum(took[other] for other in others) / sum(map(time_of, others))


def time_of(run: str) -> float:
    """Return the usual time of a stage run, of :data:`TIMES`."""
    return TIMES[run.partition(":")[0]]

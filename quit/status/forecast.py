"""How long the rest of a build takes, learnt from what its stages have taken so far."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass


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

    ``runs``: stage run -> (what it is like, its usual seconds): a run that has not begun is taken to last as long as
    the finished ones that are like it. Where there is none, it takes as many of its usual seconds as finished runs took
    of theirs; its time is unknown where its usual seconds are None, as those of language models.
    """

    def __init__(
        self, runs: Mapping[str, tuple[str, float | None]], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._runs, self._clock = dict(runs), clock
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
            if seen.done == seen.count > seen.before and other in self._runs
        }
        alike = [seconds for other, seconds in took.items() if self._runs[other] == self._runs[run]]
        if alike:
            return sum(alike) / len(alike)
        usual = {other: seconds for other in took if (seconds := self._runs[other][1])}
        if not (usual and (mine := self._runs[run][1])):
            return None
        return mine * sum(took[other] for other in usual) / sum(usual.values())

"""Counts what a run asks of its models: for the progress bar, the summary, and the next plan."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import reduce
from typing import Any


@dataclass
class Usage:
    """What one model was asked.

    ``requests``: replies that were paid for; ``cached``: those from the generation cache; ``retries``: attempts that
    failed; ``empty``: empty replies; ``cached_tokens``: prompt tokens a server took from its prefix cache;
    ``thought_tokens``: those of ``completion_tokens`` that were thoughts, where the server says so; ``assumed_cost``,
    ``assumed_tokens``: the worst case of replies that did not come or did not say what they cost; ``seconds``: wall
    time in which something was in flight.
    """

    requests: int = 0
    cached: int = 0
    retries: int = 0
    empty: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    thought_tokens: int = 0
    assumed_cost: float = 0.0
    assumed_tokens: float = 0.0
    seconds: float = 0.0

    def plus(self, other: Usage, times: int = 1) -> Usage:
        """Return the sum with ``times`` another one's counts."""
        names = [each.name for each in fields(Usage)]
        return Usage(**{name: getattr(self, name) + times * getattr(other, name) for name in names})


@dataclass
class Count(Usage):
    """Counts of one model in this process. ``expected``: requests handed in, asked for or not; ``origins``: replies
    handed out by where they came from."""

    expected: int = 0
    origins: Counter[str] = field(default_factory=Counter)


class Meter:
    """Thread-safe counts by model name."""

    def __init__(self) -> None:
        self._counts: dict[str, Count] = {}
        self._busy: dict[str, tuple[int, float]] = {}
        self._lock = threading.Lock()

    def add(self, name: str, **amounts: Any) -> None:
        """Add to a model's counts."""
        with self._lock:
            count = self._counts.setdefault(name, Count())
            for kind, amount in amounts.items():
                setattr(count, kind, getattr(count, kind) + amount)

    @contextmanager
    def busy(self, name: str) -> Iterator[None]:
        """Measure the time in which a model works; overlapping calls count once."""
        with self._lock:
            users, since = self._busy.get(name, (0, 0.0))
            self._busy[name] = (users + 1, since if users else time.monotonic())
        try:
            yield
        finally:
            with self._lock:
                users, since = self._busy[name]
                self._busy[name] = (users - 1, since)
                if users == 1:
                    self._counts.setdefault(name, Count()).seconds += time.monotonic() - since

    def snapshot(self) -> dict[str, Count]:
        """Return model name -> counts, with the running time of what is busy."""
        with self._lock:
            counts = {name: replace(count) for name, count in self._counts.items()}
            now = time.monotonic()
            for name, (users, since) in self._busy.items():
                if users:
                    counts.setdefault(name, Count()).seconds += now - since
            return counts

    def line(self) -> str:
        """Return one line for a progress bar: replies of those asked for so far, rate, share from the cache, time
        left."""
        counts = [count for count in self.snapshot().values() if count.expected]
        total, expected = reduce(Usage.plus, counts, Usage()), sum(count.expected for count in counts)
        replies = total.requests + total.cached
        if not replies:
            return ""
        rate = total.requests / total.seconds if total.seconds else 0.0
        parts = [
            f"{replies:,} of {max(replies, expected):,} replies",
            f"{rate:.1f}/s" if rate >= 1 else f"{60 * rate:.1f}/min",
            f"{total.cached / replies:.0%} from the cache",
        ]
        if rate and expected > replies:
            parts.append(f"{(expected - replies) / rate / 60:.1f} min left")
        return ", ".join(parts)

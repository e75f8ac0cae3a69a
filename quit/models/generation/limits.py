"""How fast a server is asked: requests in flight, budgets per minute, pauses after faults. For one event loop, so there
are no locks here."""

from __future__ import annotations

import asyncio
import email.utils
import random
import time
from functools import cache

BACKOFF_SECONDS, BACKOFF_CAP_SECONDS = 0.5, 30.0  # pause after the first failed attempt; it doubles up to the cap


class Limiter:
    """At most ``limit`` requests in flight. It halves when the server is overloaded and grows back by one a round.

    Additive increase, multiplicative decrease, as TCP does it. Waiters are served in order, which keeps the order of
    requests.
    """

    def __init__(self, max_requests: int) -> None:
        self.max_requests = max_requests
        self.limit = float(max_requests)
        self._free = asyncio.Semaphore(max_requests)
        self._surplus = 0
        """Places that the limit lost and that are still to be taken away."""
        self._halved = 0.0

    async def acquire(self) -> None:
        """Wait until one more may be in flight."""
        await self._free.acquire()
        while self._surplus:
            self._surplus -= 1
            await self._free.acquire()

    def release(self) -> None:
        """Note that one request is no longer in flight."""
        if self._surplus:
            self._surplus -= 1
        else:
            self._free.release()

    def succeeded(self) -> None:
        """Note a success: the limit grows by one after a full round of them."""
        before, self.limit = int(self.limit), min(float(self.max_requests), self.limit + 1 / self.limit)
        if int(self.limit) > before:
            self.release()

    def overloaded(self) -> None:
        """Halve the limit, at most once per second: one overload refuses many requests at once."""
        now = time.monotonic()
        if now - self._halved >= 1.0:
            self._halved = now
            before, self.limit = int(self.limit), max(1.0, self.limit / 2)
            self._surplus += before - int(self.limit)


class Budget:
    """So many units per minute (requests, tokens), spent evenly; 0 is no limit."""

    def __init__(self, per_minute: float) -> None:
        self._per_second = per_minute / 60
        self._room = self._per_second  # a burst of one second
        self._at = time.monotonic()

    async def spend(self, amount: float) -> None:
        """Wait until ``amount`` may be spent. A request above the budget passes, and the next ones wait longer."""
        if not self._per_second:
            return
        now = time.monotonic()
        self._room = min(self._per_second, self._room + (now - self._at) * self._per_second) - amount
        self._at = now
        if self._room < 0:
            await asyncio.sleep(-self._room / self._per_second)

    def correct(self, amount: float) -> None:
        """Return ``amount`` units to the budget, or take them if negative: the error of an estimate."""
        self._room += amount


def pause(attempt: int, min_seconds: float | None = None) -> float:
    """Return the seconds to wait after a failed attempt (1, 2, ...), never fewer than ``min_seconds``.

    They grow exponentially up to a cap, with jitter over their upper half.
    """
    longest = min(BACKOFF_CAP_SECONDS, BACKOFF_SECONDS * 2 ** (attempt - 1))
    return max(min_seconds or 0.0, random.uniform(longest / 2, longest))  # not for results: jitter only


def retry_after(value: str | None) -> float | None:
    """Return the seconds in a ``Retry-After`` header, a number or an HTTP date; None without a readable one."""
    if not value:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


@cache
def limits_of(url: str, requests: int, per_minute: float, tokens_per_minute: float) -> tuple[Limiter, Budget, Budget]:
    """Return the limits of a replica, which all models of this process that ask it share."""
    return Limiter(requests), Budget(per_minute), Budget(tokens_per_minute)

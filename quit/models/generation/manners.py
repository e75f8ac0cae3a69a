"""Manners towards a server: how many at once, how fast, when to wait, when to stop trying.

All of it runs on one event loop, so there are no locks here.
"""

from __future__ import annotations

import asyncio
import email.utils
import random
import time
from collections import deque
from dataclasses import dataclass


class Limiter:
    """At most ``limit`` requests in flight; ``limit`` halves when the server is overloaded and grows back by one a round.

    Additive increase, multiplicative decrease, as TCP does it. Waiters are served in order, which keeps the order of requests.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.limit = float(most)
        self.in_flight = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._halved = 0.0

    async def acquire(self) -> None:
        """Wait for a place."""
        if self.in_flight < int(self.limit) and not self._waiting:
            self.in_flight += 1
            return
        place = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self.release()
            raise

    def release(self) -> None:
        """Give a place back."""
        self.in_flight -= 1
        self._wake()

    def succeeded(self) -> None:
        """A request went well: room for one more a full round of them."""
        if self.limit < self.most:
            self.limit = min(float(self.most), self.limit + 1 / self.limit)
            self._wake()

    def overloaded(self) -> None:
        """The server asks for less. Halves once a second at most: one overload refuses many requests at once."""
        now = time.monotonic()
        if now - self._halved >= 1.0:
            self._halved = now
            self.limit = max(1.0, self.limit / 2)

    def _wake(self) -> None:
        while self._waiting and self.in_flight < int(self.limit):
            place = self._waiting.popleft()
            if not place.done():
                self.in_flight += 1
                place.set_result(None)


class Budget:
    """So many units a minute (requests, tokens), spent evenly; 0 is no limit."""

    def __init__(self, per_minute: float) -> None:
        self._per_second = per_minute / 60
        self._room = per_minute / 60  # a burst of one second
        self._at = time.monotonic()

    async def spend(self, amount: float) -> None:
        """Wait until ``amount`` may be spent. May go below zero: one large request is not refused, the next ones wait."""
        if not self._per_second:
            return
        now = time.monotonic()
        self._room = min(self._per_second, self._room + (now - self._at) * self._per_second)
        self._at = now
        self._room -= amount
        if self._room < 0:
            await asyncio.sleep(-self._room / self._per_second)

    def correct(self, amount: float) -> None:
        """Give back what was estimated too much, or take what was too little."""
        self._room += amount


@dataclass
class Patience:
    """Pauses between attempts: exponential with full jitter (half of it at least), never shorter than the server asks."""

    base: float
    cap: float

    def pause(self, attempt: int, retry_after: float | None = None) -> float:
        """Return the seconds to wait after the given failed attempt (1, 2, ...)."""
        most = min(self.cap, self.base * 2 ** (attempt - 1))
        return max(retry_after or 0.0, random.uniform(most / 2, most))  # not for results: jitter only


def retry_after(value: str | None) -> float | None:
    """Return the seconds in a ``Retry-After`` header, a number or an HTTP date; None where there is none or it is unreadable."""
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


class Circuit:
    """Whether a server is there at all. Opens after ``failures`` failed connections in a row; one success closes it."""

    def __init__(self, failures: int) -> None:
        self._failures = failures
        self.failed = 0
        self.last = ""

    @property
    def is_open(self) -> bool:
        """Whether it is no use to send more."""
        return self.failed >= self._failures

    def failure(self, message: str) -> None:
        """The server could not be reached."""
        self.failed += 1
        self.last = message

    def success(self) -> None:
        """The server answered something."""
        self.failed = 0

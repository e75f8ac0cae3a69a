"""The lease on a workspace, made of numbered objects that are created and never taken over.

::

    locks/build/00000007.json   the highest number holds; its holder rewrites it every few seconds with a higher beat

A run takes the workspace by creating the next number, which the store grants to exactly one run. A holder counts as
dead when its object has not changed for the length of its lease. The *waiting* machine measures that by its own
monotonic clock, so no two clocks are compared. If a holder was only disconnected, it sees a higher number on its return
and stops before writing (:meth:`Lease.check`).
"""

from __future__ import annotations

import json
import logging
import threading
import time
import uuid
from collections.abc import Callable
from typing import Any

from quit.errors import QuitError, WorkspaceError
from quit.store.base import described, this_process
from quit.store.objects import Objects

_LOG = logging.getLogger(__name__)
_UNDER = "locks/build"
_HEARTBEATS = 4  # signs of life in the length of a lease: three may be lost


class Lease:
    """The right to write, for one run. Not to be used twice at once."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._number = 0
        self._mine: dict[str, Any] = {}
        self._ended = threading.Event()
        self._heart: threading.Thread | None = None

    def acquire(self, seconds: float, waiting: Callable[[str], None] = lambda _: None) -> None:
        """Take the workspace, waiting up to ``seconds`` for its holder; ``waiting`` is called once.

        Raises :class:`WorkspaceError` when it is still held then.
        """
        how, deadline = self._objects.how, time.monotonic() + seconds
        last_entry, since, announced = None, 0.0, False
        while True:
            newest = number, holder = self._newest()
            if newest != last_entry:
                last_entry, since = newest, time.monotonic()
            if holder.get("released") or time.monotonic() - since > float(holder.get("lease", how.lease_seconds)):
                if self._take(number + 1):
                    return
                continue  # someone else was quicker
            who = described(holder) or "unknown"
            if not announced:
                waiting(f"Another run holds {self._objects.url} ({who}); waiting for it.")
                announced = True
            if time.monotonic() >= deadline:
                raise WorkspaceError(
                    f"Another run still holds {self._objects.url} ({who}) after {seconds:g} s. "
                    "Try again when it has finished."
                )
            time.sleep(min(how.poll_seconds, max(0.05, deadline - time.monotonic())))

    def check(self) -> None:
        """Raise :class:`WorkspaceError` when another run has taken the workspace meanwhile. Asks the store."""
        if self._highest() != self._number:
            raise WorkspaceError(
                f"This run was cut off from {self._objects.url} for longer than its lease, and another run has taken "
                "the workspace. Nothing of the other's was touched; run the same command again."
            )

    def info(self) -> dict[str, Any] | None:
        """Return the holder that the newest lease names, or None if there is none or it was released."""
        holder = self._newest()[1]
        return None if holder.get("released") else holder or None

    def release(self) -> None:
        """Give the workspace back. Where the store cannot be told, the lease runs out by itself."""
        self._ended.set()
        if self._heart is not None:
            self._heart.join()
        try:
            self._write(released=True)
        except QuitError as error:
            _LOG.warning(
                "%s could not be given back and is free when the lease has run out: %s", self._objects.url, error
            )

    def _take(self, number: int) -> bool:
        lease_seconds = self._objects.how.lease_seconds
        self._mine = {"token": uuid.uuid4().hex, **this_process(), "lease": lease_seconds, "beat": 0, "released": False}
        if not self._objects.create(self._key(number), json.dumps(self._mine).encode()):
            return False
        numbers = self._numbers()
        if max(numbers) != number:  # a number that was free only because it had been cleared away: someone is far ahead
            self._objects.delete([self._key(number)])
            return False
        self._objects.delete(self._key(older) for older in numbers if older < number)
        self._number = number
        self._ended.clear()
        self._heart = threading.Thread(target=self._beat, name="workspace-lease", daemon=True)
        self._heart.start()
        return True

    def _beat(self) -> None:
        while not self._ended.wait(self._objects.how.lease_seconds / _HEARTBEATS):
            try:
                if self._highest() != self._number:
                    return  # lost; check() says so before anything is changed
                self._write(beat=self._mine["beat"] + 1)
            except QuitError as error:
                _LOG.warning("no sign of life could be given: %s", error)

    def _write(self, **changed: Any) -> None:
        self._mine |= changed
        self._objects.write(self._key(self._number), json.dumps(self._mine).encode())

    def _newest(self) -> tuple[int, dict[str, Any]]:
        number = self._highest()
        try:
            holder = json.loads(self._objects.read(self._key(number)) or b"{}") if number else {"released": True}
        except ValueError:
            holder = {}
        return number, holder if isinstance(holder, dict) else {}

    def _numbers(self) -> list[int]:
        names = (key.rpartition("/")[2].removesuffix(".json") for key in self._objects.listing(_UNDER))
        return [int(name) for name in names if name.isdigit()]

    def _highest(self) -> int:
        return max(self._numbers(), default=0)

    def _key(self, number: int) -> str:
        return f"{_UNDER}/{number:08d}.json"

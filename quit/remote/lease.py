"""Who may write: a lease on a workspace, made of numbered objects that are only ever created, never taken over in place.

::

    locks/build/00000007.json   the highest number holds; its holder writes it anew every few seconds, with a higher ``beat``

To take the workspace is to create the next number, which a store grants to exactly one of those who try. A holder is taken for
dead when its object has not changed for the length of its lease by the *waiting* machine's own monotonic clock, so that no two
clocks are ever compared. A holder that was only cut off finds a higher number when it comes back, and stops before it changes
anything that others read (:meth:`Lease.check`).
"""

from __future__ import annotations

import json
import logging
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable
from typing import Any

from quit.errors import QuitError, WorkspaceError
from quit.remote.store import Store

_LOG = logging.getLogger(__name__)
_BEATS = 4  # signs of life in the length of a lease: three may be lost


class Lease:
    """The right to write, for one run. Not to be used twice at once."""

    def __init__(self, store: Store, name: str = "build") -> None:
        self._store = store
        self._under = f"locks/{name}"
        self._number = 0
        self._mine: dict[str, Any] = {}
        self._ended = threading.Event()
        self._heart: threading.Thread | None = None

    def acquire(self, seconds: float, waiting: Callable[[str], None] = lambda _: None) -> None:
        """Take the workspace, waiting up to ``seconds`` for who holds it; ``waiting`` is told once.

        Raises :class:`WorkspaceError` when it is still held then.
        """
        deadline = time.monotonic() + seconds
        seen: tuple[Any, ...] | None = None
        since, told = 0.0, False
        while True:
            number = self._highest()
            held = self._read(number) if number else {"released": True}
            mark = (number, held.get("token"), held.get("beat"))
            if mark != seen:
                seen, since = mark, time.monotonic()
            dead = time.monotonic() - since > float(held.get("lease", self._store.how.lease_seconds))
            if (held.get("released") or dead) and self._take(number + 1):
                return
            if held.get("released") or dead:
                continue  # someone else was quicker
            who = f"process {held.get('pid', '?')} on {held.get('host', '?')} since {held.get('since', '?')}"
            if not told:
                waiting(f"Another run holds {self._store.url} ({who}); waiting for it.")
                told = True
            if time.monotonic() >= deadline:
                raise WorkspaceError(
                    f"Another run still holds {self._store.url} ({who}) after {seconds:g} s. Try again when it has finished."
                )
            time.sleep(min(self._store.how.poll_seconds, max(0.05, deadline - time.monotonic())))

    def check(self) -> None:
        """Raise :class:`WorkspaceError` when another run has taken the workspace meanwhile. Asks the store."""
        if self._highest() != self._number:
            raise WorkspaceError(
                f"This run was cut off from {self._store.url} for longer than its lease, and another run has taken the "
                "workspace. Nothing of the other's was touched; run the same command again."
            )

    def info(self) -> dict[str, Any] | None:
        """Return what the newest lease says of its holder, or None where there is none or it was given back."""
        number = self._highest()
        found = self._read(number) if number else {}
        return None if not found or found.get("released") else found

    def release(self) -> None:
        """Give the workspace back. Where the store cannot be told, the lease runs out by itself."""
        self._ended.set()
        if self._heart is not None:
            self._heart.join()
        try:
            self._write(released=True)
        except QuitError as error:
            _LOG.warning(
                "%s could not be given back and is free when the lease has run out: %s", self._store.url, error
            )

    def _take(self, number: int) -> bool:
        self._mine = {
            "token": uuid.uuid4().hex,
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "since": time.strftime("%Y-%m-%d %H:%M:%S"),
            "lease": self._store.how.lease_seconds,
            "beat": 0,
            "released": False,
        }
        if not self._store.create(self._key(number), json.dumps(self._mine).encode()):
            return False
        known = self._numbers()
        if max(known) != number:  # a number that was free only because it had been cleared away: someone is far ahead
            self._store.delete([self._key(number)])
            return False
        self._store.delete(self._key(one) for one in known if one < number)
        self._number = number
        self._ended.clear()
        self._heart = threading.Thread(target=self._beat, name="workspace-lease", daemon=True)
        self._heart.start()
        return True

    def _beat(self) -> None:
        while not self._ended.wait(self._store.how.lease_seconds / _BEATS):
            try:
                if self._highest() != self._number:
                    return  # lost; check() says so before anything is changed
                self._write(beat=self._mine["beat"] + 1)
            except QuitError as error:
                _LOG.warning("no sign of life could be given: %s", error)

    def _write(self, **changed: Any) -> None:
        self._mine |= changed
        self._store.write(self._key(self._number), json.dumps(self._mine).encode())

    def _read(self, number: int) -> dict[str, Any]:
        try:
            found = json.loads(self._store.read(self._key(number)) or b"{}")
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    def _numbers(self) -> list[int]:
        names = (key.rpartition("/")[2].removesuffix(".json") for key in self._store.listing(self._under))
        return [int(name) for name in names if name.isdigit()]

    def _highest(self) -> int:
        return max(self._numbers(), default=0)

    def _key(self, number: int) -> str:
        return f"{self._under}/{number:08d}.json"

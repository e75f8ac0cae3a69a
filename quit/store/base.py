"""The interface of a workspace's storage."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from quit.store.objects import Objects

MARKER = "workspace.json"
CHANGING = (
    *(MARKER, "build.json", "state.json", "usage.jsonl"),
    *("reviews/applied.json", "reviews/audit.json", "reviews/project.json", "reviews/sync.json"),
)
"""The small files of a workspace that are written more than once."""

Make = Callable[[Path], object]
"""Writes a file under the temporary name that it is given."""
Part = Mapping[str, Any]
"""The manifest entry of a part: ``file``, ``rows``, ``bytes``, ``sha256``."""


class Store(Protocol):
    """Files below ``path``, each there whole or not at all. Every method may raise a :class:`quit.errors.QuitError`.

    ``objects``: the shared place that ``path`` is a local copy of; None where it is no copy. ``address``: what another
    process opens the store by.
    """

    path: Path

    @property
    def objects(self) -> Objects | None: ...

    @property
    def address(self) -> str: ...

    def has(self, path: Path, *, now: bool = False) -> bool:
        """Whether there is a file; ``now``: after a look at what others have written."""

    def below(self, folder: Path) -> Iterator[tuple[Path, float]]:
        """Yield the files below a folder, and when each was written (seconds since 1970; 0 where that is not known)."""

    def fetch(self, parts: Mapping[Path, Part | None]) -> None:
        """Make files readable here, and compare them with their manifests if any. Raises for the first that differs."""

    def fault(self, path: Path, part: Part | None) -> str | None:
        """Return what is wrong with a part, None where nothing is; ``part`` is None where no manifest knows it yet."""

    def write(self, path: Path, make: Make) -> None:
        """Write a small file, replacing what is there."""

    def changing(self, path: Path) -> AbstractContextManager[Path]:
        """Let a small file be changed in place; others see the change afterwards."""

    def add(self, path: Path, make: Make) -> None:
        """Write an immutable file. Writers at the same time must write the same content; one of them wins."""

    def create(self, path: Path, make: Make) -> bool:
        """Write a file where there is none. Of several who try exactly one gets True; the others write nothing."""

    def add_folder(self, source: Path, target: Path, last: str) -> None:
        """Move a finished folder of this machine into place; the file ``last`` marks it as complete."""

    def remove(self, paths: Iterable[Path]) -> None:
        """Remove files; one that is not there is no fault."""

    def lock(self, seconds: float, waiting: Callable[[str], None]) -> AbstractContextManager[None]:
        """Hold the workspace for one run, waiting up to ``seconds``; ``waiting`` is called once with who holds it."""

    def holder(self) -> dict[str, Any] | None:
        """Return the holder that the lock names (``pid``, ``host``, ``since``), dead or alive, or None."""


def this_process() -> dict[str, Any]:
    """Return the facts that a lock holds about its holder."""
    return {"pid": os.getpid(), "host": socket.gethostname(), "since": time.strftime("%Y-%m-%d %H:%M:%S")}


def described(holder: Mapping[str, Any] | None) -> str:
    """Return the holder of a workspace in words; empty if there is none."""
    if not holder:
        return ""
    return "process {} on {} since {}".format(*(holder.get(key, "?") for key in ("pid", "host", "since")))

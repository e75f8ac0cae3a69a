"""How far a job is: whoever works reports it, the terminal and the flows' logs listen."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain, repeat
from threading import Event, Thread
from typing import Any

from quit.text.invisible import visible
from quit.text.secrets import without_secrets

LOOK_SECONDS = 5.0
"""Seconds between looks at work that has not reported."""
WAIT_SECONDS = 2.0, *[10.0] * 12
"""Seconds before the first lines that say what is being done; every minute after these."""


class Listener:
    """Hears how far the jobs of this process are. Override what you want to hear."""

    def advanced(self, what: str, by: int, total: int | None) -> None:
        """``by`` more of ``what`` (``beir: passages``) are done, of ``total`` where that is known."""

    def shards(self, number: int, run: str, done: int, count: int) -> None:
        """``done`` of ``count`` shards of a stage run (``read:minilm-late``) are done; ``number``: the stage's."""

    def build_begins(self, pipeline: Any) -> None:
        """A build (``quit.engine.pipeline.Pipeline``) begins, before its first shard."""

    def noted(self, text: str, loud: bool) -> None:
        """Something happened that people should know. ``loud``: even those who want to hear nothing but errors."""


_listeners: list[Listener] = []


def advance(what: str, by: int = 1, total: int | None = None) -> None:
    """Report that ``by`` more of ``total`` are done."""
    for listener in _listeners:
        listener.advanced(what, by, total)


def shards_done(number: int, run: str, done: int, count: int) -> None:
    """Report the shards of a stage run."""
    for listener in _listeners:
        listener.shards(number, run, done, count)


def build_begins(pipeline: Any) -> None:
    """Report that a build begins."""
    for listener in _listeners:
        listener.build_begins(pipeline)


def note(text: str, loud: bool = False) -> None:
    """Report something in one sentence: what is waited for, what was lost, what was found damaged.

    What is ``loud`` goes to stderr where nobody listens.
    """
    text = without_secrets(text)
    for listener in _listeners:
        listener.noted(text, loud)
    if loud and not _listeners:
        print(visible(text), file=sys.stderr)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Have ``listener`` hear everything in this block."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


@contextmanager
def saying(line: Callable[[float], str]) -> Iterator[None]:
    """Print to stderr what ``line`` returns for the seconds since the block began, if anything, after
    :data:`WAIT_SECONDS`."""
    begin, ended = time.monotonic(), Event()

    def say() -> None:
        for seconds in chain(WAIT_SECONDS, repeat(60.0)):
            if ended.wait(seconds):
                break
            if text := line(time.monotonic() - begin):
                print(visible(text), file=sys.stderr, flush=True)

    Thread(target=say, name="waiting", daemon=True).start()
    try:
        yield
    finally:
        ended.set()


def is_heard() -> bool:
    """Return whether anybody listens, who then says how far the work is."""
    return bool(_listeners)

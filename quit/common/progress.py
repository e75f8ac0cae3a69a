"""How far a job is: whoever works reports it, the terminal and the flows' logs listen."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from quit.text.invisible import visible

LOOK_SECONDS = 5.0
"""Seconds between looks at work that has not reported."""


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

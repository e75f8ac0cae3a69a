"""How far a long command is: whoever does the work says so, the terminal listens. Where nobody listens it costs nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Listener = Callable[[str, int, int | None], None]
"""Told what advances (``beir: passages``), by how much, and how much there is in all, where that is known."""

_listeners: list[Listener] = []


def advance(what: str, by: int = 1, total: int | None = None) -> None:
    """Say that ``by`` more of ``total`` are done."""
    for listener in _listeners:
        listener(what, by, total)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Have ``listener`` told in this block."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)

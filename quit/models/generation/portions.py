"""A language model of this program whose requests may go to other processes, in portions of seconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from quit.models.generation.base import ChatRequest, Completion, Generator, OnReply
from quit.models.generation.ledger import Ledger

FIRST = 64
"""Requests of a caller's first portion."""
SECONDS = 5.0
"""The length of a portion: what a lost worker has computed in vain, at most."""
_LEAST, _MOST = 8, 4096  # requests

Elsewhere = Callable[[Sequence[ChatRequest]], list[Completion]]
"""Has another process answer requests, in order."""


class PortionedGenerator:
    """``model``: answers where ``elsewhere`` returns None at the time of the call."""

    def __init__(self, model: Generator, ledger: Ledger, elsewhere: Callable[[], Elsewhere | None]) -> None:
        self.name = model.name
        self.identity = model.identity
        self._model = model
        self._ledger = ledger
        self._elsewhere = elsewhere

    def generate(self, requests: Sequence[ChatRequest], on_reply: OnReply) -> None:
        """See :class:`quit.models.generation.base.Generator`. The replies to a portion are on disk before the next."""
        answer = self._elsewhere()
        if answer is None:
            return self._model.generate(requests, on_reply)
        start, size = 0, FIRST
        while start < len(requests):
            self._ledger.check_not_stopped()
            begin = time.monotonic()
            portion = requests[start : start + size]
            commits = [on_reply(position, reply) for position, reply in enumerate(answer(portion), start)]
            for commit in filter(None, commits):
                commit.result()
            start += len(portion)
            fitting = len(portion) * SECONDS / max(time.monotonic() - begin, 1e-9)
            size = int(min(max(_LEAST, fitting), 2 * size, _MOST))

    def release(self) -> None:
        """See :class:`quit.models.generation.base.Generator`."""
        self._model.release()

"""Asking a language model again until its reply can be read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from quit.models.generation.base import ChatRequest
from quit.models.generation.cached import CachedGenerator

Value = TypeVar("Value")


def ask_until_read(
    generator: CachedGenerator, requests: Sequence[ChatRequest], read: Callable[[str], Value | None], attempts: int
) -> list[tuple[str, Value | None]]:
    """Return the last reply to each request and what ``read`` makes of it, in order; None where it makes nothing of any.

    A request is asked at most ``attempts`` times, each time as the next sample.
    """
    replies: list[tuple[str, Value | None]] = [("", None)] * len(requests)
    for attempt in range(attempts):
        unread = [number for number, (_, value) in enumerate(replies) if value is None]
        if not unread:
            break
        asked = [replace(requests[number], sample=requests[number].sample + attempt) for number in unread]
        for number, reply in zip(unread, generator.complete(asked), strict=True):
            replies[number] = reply.text, read(reply.text)
    return replies

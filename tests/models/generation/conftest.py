"""Short pauses, and a clock for tests of limits."""

import asyncio
from types import SimpleNamespace

import pytest

from quit.models.generation import replica


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replica, "BACKOFF_SECONDS", 0.02)
    monkeypatch.setattr(replica, "BACKOFF_CAP_SECONDS", 0.1)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The clock that replicas see: it shows ``now`` and goes on only by their ``pauses``, which take no time."""
    clock = SimpleNamespace(now=1_000_000.0, pauses=[])

    async def sleep(seconds: float) -> None:
        clock.pauses.append(seconds)
        clock.now += seconds

    monkeypatch.setattr(replica, "time", SimpleNamespace(monotonic=lambda: clock.now, time=lambda: clock.now))
    # Not of all: threads that earlier tests left behind sleep too.
    monkeypatch.setattr(replica, "asyncio", SimpleNamespace(**{**vars(asyncio), "sleep": sleep}))
    return clock

"""Short pauses, a clock for tests of limits, and an empty cache."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from quit.models.generation import GenerationCache, limits, replica


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "BACKOFF_SECONDS", 0.02)
    monkeypatch.setattr(limits, "BACKOFF_CAP_SECONDS", 0.1)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The clock that replicas see: it shows ``now`` and goes on only by their ``pauses``, which take no time."""
    clock = SimpleNamespace(now=1_000_000.0, pauses=[])

    async def sleep(seconds: float) -> None:
        clock.pauses.append(seconds)
        clock.now += seconds

    for module in (limits, replica):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock.now, time=lambda: clock.now))
        # Not of all: threads that earlier tests left behind sleep too.
        monkeypatch.setattr(module, "asyncio", SimpleNamespace(**{**vars(asyncio), "sleep": sleep}))
    return clock


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[GenerationCache]:
    with GenerationCache(tmp_path / "g.sqlite") as cache:
        yield cache

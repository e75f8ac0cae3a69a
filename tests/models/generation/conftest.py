"""A clock for tests of limits and pauses."""

from types import SimpleNamespace

import pytest

from quit.models.generation import replica


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The clock that replicas see: it shows ``now`` and goes on only by their ``pauses``, which take no time."""
    clock = SimpleNamespace(now=1_000_000.0, pauses=[])

    async def sleep(seconds: float) -> None:
        clock.pauses.append(seconds)
        clock.now += seconds

    monkeypatch.setattr(replica, "time", SimpleNamespace(monotonic=lambda: clock.now, time=lambda: clock.now))
    monkeypatch.setattr("asyncio.sleep", sleep)
    return clock

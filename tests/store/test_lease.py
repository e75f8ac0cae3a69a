"""The lease: exactly one holds, who is dead is replaced, who was cut off finds out."""

import json
import time
from functools import partial
from types import SimpleNamespace

import pytest

from quit.errors import ServerError, WorkspaceError
from quit.settings.settings import Remote
from quit.store import lease as module
from quit.store.lease import Lease
from quit.store.objects import Objects, open_objects
from tests.running import together

QUICK = Remote(lease_seconds=1.0)


class Stuck(Lease):
    """A run that stops giving signs of life: killed, frozen or cut off."""

    def _beat(self) -> None:
        return


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The clock of who waits: it goes on only while they sleep."""
    clock = SimpleNamespace(now=0.0)

    def sleep(seconds: float) -> None:
        clock.now += seconds

    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock.now, sleep=sleep))
    return clock


def test_of_many_who_try_at_once_exactly_one_holds(place: str) -> None:
    events: list[int] = []

    def work(number: int) -> None:
        lease = Lease(open_objects(place, QUICK))
        lease.acquire(120)
        events.append(number)
        time.sleep(0.01)
        events.append(number)
        lease.release()

    together(*(partial(work, number) for number in range(6)))
    assert events[::2] == events[1::2] and sorted(events[::2]) == list(range(6))


def test_a_dead_holder_is_replaced_when_its_lease_has_run_out_and_not_before(place, clock) -> None:
    dead = Stuck(open_objects(place, QUICK))
    dead.acquire(0)
    with pytest.raises(WorkspaceError, match="still holds"):
        Lease(open_objects(place, QUICK)).acquire(QUICK.lease_seconds - 0.1)
    began = clock.now
    heir = Lease(open_objects(place, QUICK))
    heir.acquire(120)
    assert QUICK.lease_seconds < clock.now - began < QUICK.lease_seconds + 2 * QUICK.poll_seconds
    with pytest.raises(WorkspaceError, match="another run has taken the workspace"):
        dead.check()
    dead.release()  # changes nothing for the heir
    heir.check()
    heir.release()
    slow = Stuck(open_objects(place, QUICK.model_copy(update={"lease_seconds": 30})))
    slow.acquire(0)
    with pytest.raises(WorkspaceError, match="still holds"):  # the holder's own lease counts
        Lease(open_objects(place, QUICK)).acquire(29)


def test_a_living_holder_is_waited_for_however_long_it_takes(place: str) -> None:
    holder = Lease(open_objects(place, QUICK))
    holder.acquire(0)
    with pytest.raises(WorkspaceError, match="still holds"):
        Lease(open_objects(place, QUICK)).acquire(1.5 * QUICK.lease_seconds)
    holder.check()
    holder.release()


def test_a_number_that_was_cleared_away_gives_nothing(place: str) -> None:
    """Who looked long ago may create a low number again; it must not believe that it holds the workspace."""
    store = open_objects(place, QUICK)
    for _ in range(3):
        lease = Lease(store)
        lease.acquire(0)
        lease.release()
    assert list(store.listing("locks")) == ["locks/build/00000003.json"]
    assert not Lease(store)._take(2)
    assert list(store.listing("locks")) == ["locks/build/00000003.json"]


def test_a_damaged_lease_is_replaced_when_it_does_not_change(place: str, clock: SimpleNamespace) -> None:
    store = open_objects(place, QUICK)
    store.write("locks/build/00000005.json", b"{")
    lease = Lease(store)
    lease.acquire(120)
    assert json.loads(store.read("locks/build/00000006.json") or b"")["released"] is False
    lease.release()


def test_a_network_that_fails_for_a_while_costs_nothing(place: str, caplog: pytest.LogCaptureFixture) -> None:
    store = open_objects(place, QUICK)
    lease = Lease(store)
    lease.acquire(0)
    listing, store.listing = store.listing, lambda under="": (_ for _ in ()).throw(ServerError("cut off"))
    time.sleep(QUICK.lease_seconds / 2)
    with pytest.raises(ServerError, match="cut off"):
        lease.check()
    store.listing = listing
    lease.check()
    lease.release()
    assert "no sign of life could be given: cut off" in caplog.text


def test_a_store_that_cannot_refuse_to_replace_still_has_one_holder(place: str, monkeypatch) -> None:
    """The last writer wins there; everyone looks again when the dust has settled."""

    def careless(self: Objects, key: str, value: bytes) -> bool:
        self._put(key, value)
        return True

    monkeypatch.setattr(type(open_objects(place)), "_put_new", careless)
    won = []
    together(*[lambda: won.append(Lease(open_objects(place, QUICK))._take(1))] * 4)
    assert sum(won) == 1

"""How a server is treated: limits and pauses, each on its own."""

import asyncio
import email.utils
from dataclasses import replace
from types import SimpleNamespace

import pytest

from quit.models.generation.base import Completion
from quit.models.generation.limits import Budget, Limiter, pause, retry_after
from quit.models.generation.replica import tokens_used


def test_a_budget_is_spent_evenly_after_a_burst_of_one_second(clock: SimpleNamespace) -> None:
    async def scene(budget: Budget, amounts: list[float]) -> list[float]:
        began, after = clock.now, []
        for amount in amounts:
            await budget.spend(amount)
            after.append(clock.now - began)
        return after

    budget = Budget(600)  # ten a second
    assert asyncio.run(scene(budget, [1] * 12)) == pytest.approx([0] * 10 + [0.1, 0.2])
    clock.now += 60
    assert asyncio.run(scene(budget, [25, 1])) == pytest.approx([1.5, 1.6]), "no more than a second's is saved up"
    budget.correct(5)
    assert asyncio.run(scene(budget, [3, 3])) == pytest.approx([0, 0.1]), "six spent, five given back"
    assert asyncio.run(scene(Budget(0), [10**6] * 3)) == [0, 0, 0], "no limit"


async def _waiting(limiter: Limiter, count: int) -> list[asyncio.Future[None]]:
    """Return so many waiters for a place; those that can have one have it."""
    waiters = [asyncio.ensure_future(limiter.acquire()) for _ in range(count)]
    await _settle()
    return waiters


async def _settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_the_limiter_lets_through_so_many_in_order_and_a_cancelled_waiter_gives_its_place_back() -> None:
    async def scene() -> None:
        limiter = Limiter(2)
        waiters = await _waiting(limiter, 6)
        assert [waiter.done() for waiter in waiters] == [True] * 2 + [False] * 4
        waiters[2].cancel()
        limiter.release()
        limiter.release()
        await _settle()
        assert [waiter.done() for waiter in waiters] == [True] * 5 + [False]
        waiters[5].cancel()

    asyncio.run(scene())


def test_after_an_overload_places_are_taken_away_until_the_new_limit_holds() -> None:
    async def scene() -> None:
        limiter = Limiter(8)
        await _waiting(limiter, 3)
        limiter.overloaded()
        fourth, fifth = await _waiting(limiter, 2)
        assert fourth.done() and not fifth.done(), "four are in flight"
        limiter.release()
        await asyncio.wait_for(fifth, 1)

    asyncio.run(scene())


def test_the_limit_halves_once_for_one_overload_and_grows_back(clock: SimpleNamespace) -> None:
    limiter = Limiter(32)
    for _ in range(20):  # one overload refuses many requests at once
        limiter.overloaded()
    assert limiter.limit == 16
    clock.now += 1
    limiter.overloaded()
    assert limiter.limit == 8
    for _ in range(8):
        limiter.succeeded()
    assert 8.9 < limiter.limit <= 9.1, "about one more after a full round"
    for _ in range(10_000):
        limiter.succeeded()
    assert limiter.limit == 32


@pytest.mark.parametrize("attempt", [1, 2, 5, 20])
def test_pauses_double_up_to_the_cap(attempt: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    most = min(30, 0.5 * 2 ** (attempt - 1))
    pauses = [pause(attempt) for _ in range(200)]
    assert all(most / 2 <= seconds <= most for seconds in pauses)
    assert max(pauses) - min(pauses) > most / 10, "jitter keeps clients apart"
    assert pause(attempt, 60) == 60


def test_retry_after_is_seconds_or_a_date(clock: SimpleNamespace) -> None:
    later, earlier = (email.utils.formatdate(clock.now + seconds, usegmt=True) for seconds in (30, -30))
    assert [retry_after(text) for text in ("7", later, earlier)] == [7, 30, 0]
    beyond = "Fri, 31 Dec 1999 23:59:59 +99999999999999"  # more than a time zone can be
    assert [retry_after(text) for text in (None, "soon", beyond)] == [None] * 3


def test_a_server_cannot_report_more_tokens_than_a_request_has_bytes() -> None:
    """Or a wrong count would hold the next requests for days."""
    completion = Completion("Lesotho", "stop", 10**9, 5)
    assert tokens_used(completion, b"x" * 300, 16) == 316
    assert tokens_used(replace(completion, prompt_tokens=120), b"x" * 300, 16) == 125

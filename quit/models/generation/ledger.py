"""A cap on what requests to servers cost: one is sent only where its worst case still fits."""

from __future__ import annotations

import asyncio
import json
import math
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import Field

from quit.common.files import replacing
from quit.common.state_files import StateFile
from quit.errors import CapReached, Stopped
from quit.models.generation.base import Completion

_SPENT: StateFile[list[float]] = StateFile(
    "spent.json",
    Annotated[list[float], Field(min_length=2, max_length=2)],
    "Delete it; what is spent is then read from usage.jsonl.",
)
_STEPS = 100  # the file is ahead of what is spent by a hundredth of the cap at most: that is what a kill costs


class Amount(NamedTuple):
    """Money, in the currency of the prices, and tokens of prompts and replies."""

    cost: float = 0.0
    tokens: float = 0.0

    def plus(self, other: Amount, times: float = 1.0) -> Amount:
        """Return the sum with ``times`` another amount; what is infinite there is left out."""
        return Amount(*(own + times * more if math.isfinite(more) else own for own, more in zip(self, other)))

    @classmethod
    def total(cls, amounts: Iterable[Amount]) -> Amount:
        """Return the sum of amounts."""
        return reduce(cls.plus, amounts, cls())

    def fits(self, cap: Amount) -> bool:
        """Whether neither money nor tokens are above a cap."""
        return self.cost <= cap.cost and self.tokens <= cap.tokens


class Ledger:
    """What requests have cost, with those in flight at their worst: never above ``cap``. For threads and one loop.

    Its file (:meth:`open`) holds at least what is spent, before it is spent, so that a kill forgets nothing.
    """

    def __init__(self, cost: float | None = None, tokens: float | None = None) -> None:
        self.cap = Amount(math.inf if cost is None else cost, math.inf if tokens is None else tokens)
        self.spent = self.assumed = Amount()
        self.owner = ""  # its file: tells ledgers apart
        self._is_stopped = False
        self._overrun = ""
        self._in_flight = 0
        self._written = Amount()
        self._path: Path | None = None
        self._settled = asyncio.Event()
        self._lock = threading.Lock()

    @property
    def is_capped(self) -> bool:
        return any(map(math.isfinite, self.cap))

    def open(self, folder: Path, spent: Amount, assumed: Amount | None = None) -> None:
        """Go on from what the folder's file says, or from ``spent`` where that is more; ``assumed`` of it was not
        counted by a server. Without a cap there is no file."""
        if self.is_capped:
            on_disk = Amount(*(_SPENT.read(folder) or ()))
            with self._lock:
                self._path, self.spent = folder / _SPENT.name, Amount(*map(max, on_disk, spent))
                self.assumed = self.spent.plus(spent, -1).plus(assumed or Amount())
                self.owner = str(self._path.resolve())

    def close(self) -> None:
        """Write what is spent."""
        with self._lock:
            if self._path is not None:
                self._write(self.spent)

    def stop(self) -> None:
        """Let no further request begin, as after an interrupt."""
        self._is_stopped = True

    def end(self, overrun: str) -> None:
        """Let no further request begin: one cost more than its worst case (``overrun`` says so), so no cap holds."""
        if self.is_capped:
            self._overrun = self._overrun or overrun

    def check_not_stopped(self) -> None:
        """Raise ``Stopped`` after :meth:`stop`."""
        if self._is_stopped:
            raise Stopped("The build was interrupted. All replies are kept.")

    async def reserve(self, max_amount: Amount, *, request: bool = True) -> None:
        """Reserve the worst case of a request, after those in flight where it does not fit. Raises ``CapReached``, and
        ``Stopped`` as :meth:`check_not_stopped`.

        ``request``: whether it is settled soon, so that others wait for it; false for a batch.
        """
        while True:
            self.check_not_stopped()
            with self._lock:
                if self._overrun:
                    raise CapReached(
                        f"{self._overrun}: it does not keep its limit (max_tokens), so no cap holds. {self.state}. All "
                        "replies are kept. If it counts thoughts beside the reply, give them room in the profile "
                        "(thinking_tokens); if it knows the limit by another name, set token_field; or build without "
                        "a cap."
                    )
                if self.spent.plus(max_amount).fits(self.cap):
                    self._in_flight += request
                    return self._put(self.spent.plus(max_amount))
                if not self._in_flight:
                    how = ("quit build --max-cost, or --set run.max_cost in other commands", "--set run.max_tokens")
                    remedies = [text for text, most in zip(how, self.cap) if math.isfinite(most)]
                    raise CapReached(
                        f"{self.state}, and one more request may be too much. All replies are kept. Raise the cap to "
                        f"go on: {'; '.join(remedies)}."
                    )
                self._settled.clear()
            await self._settled.wait()

    def settle(self, max_amount: Amount, actual: Amount, *, request: bool = True, assumed: bool = False) -> None:
        """Put what a request cost in the place of what was reserved for it; ``assumed``: no server says so."""
        with self._lock:
            self.assumed = self.assumed.plus(actual, assumed)
            self._put(self.spent.plus(max_amount, -1).plus(actual))
            self._in_flight -= request
        if request:
            self._settled.set()

    @property
    def state(self) -> str:
        """What is spent, in words, and how much of it is assumed."""
        spent, assumed, cap = self.spent, self.assumed, self.cap
        cost = f"run.max_cost: {spent.cost:.4g} of {cap.cost:g} is spent ({assumed.cost:.4g} of it assumed)"
        tokens = f"run.max_tokens: {spent.tokens:,.0f} of {cap.tokens:,.0f} is spent ({assumed.tokens:,.0f} assumed)"
        return ", ".join(text for text, most in zip((cost, tokens), cap) if math.isfinite(most))

    def _put(self, spent: Amount) -> None:
        self.spent = spent
        if self._path is not None and not self.spent.fits(self._written):
            self._write(self.spent.plus(self.cap, 1 / _STEPS))

    def _write(self, amount: Amount) -> None:
        assert self._path is not None
        self._written = amount
        with replacing(self._path) as partial:
            partial.write_text(json.dumps(amount), encoding="utf-8")


@dataclass(frozen=True)
class Account:
    """A model's part in a ledger. ``price``: (prompt tokens, those of a prefix cache, reply tokens) -> cost."""

    ledger: Ledger
    price: Callable[[float, float, float], float | None] = lambda *_: 0.0

    def worst(self, body: bytes, reply_tokens: int) -> Amount:
        """Return what a request costs at most: a token of its prompt has a byte at least."""
        prompt = len(body)
        costs = (self.price(prompt, cached, reply_tokens) or 0.0 for cached in (0, prompt))
        return Amount(max(costs), prompt + reply_tokens)

    def actual(self, reply: Completion, worst: Amount) -> Amount:
        """Return what a reply has cost, by the server's count; the worst, or more, where that lacks a part of it."""
        cost = self.price(reply.prompt_tokens, reply.cached_tokens, reply.completion_tokens)
        amount = Amount(cost or 0.0, reply.prompt_tokens + reply.completion_tokens)
        return amount if reply.prompt_tokens and reply.completion_tokens else Amount(*map(max, amount, worst))

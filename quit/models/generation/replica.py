"""One server: sends requests in order and within its limits, and repeats those whose fault may pass.

All of it runs on one event loop, so there are no locks here.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import InitVar, dataclass, field, replace
from typing import Any

import aiohttp

from quit.common.endpoints import address, proxy_of
from quit.common.progress import note
from quit.errors import QuitError, ServerError, SettingsError
from quit.models.generation import reply as replies
from quit.models.generation.base import ChatRequest, Completion, OnReply
from quit.models.generation.chat import Chat, RefusedRequest
from quit.models.generation.ledger import Account, Amount
from quit.models.generation.limits import limits_of, pause
from quit.models.generation.meter import Meter
from quit.models.generation.reply import PassingFault
from quit.models.generation.serving import CONNECT_SECONDS, endpoint
from quit.text.secrets import shown
from quit.text.words import counted

_BYTES_A_TOKEN = 4.0  # for token budgets before the server's own count is known
MAX_BYTES = 4 << 20  # bytes of a reply, after decompression; a thousand times what a long one has
_EMPTY_RETRIES = 1  # times that an empty reply is asked for again before it counts
CIRCUIT_FAILURES = 5  # connections in a row that cannot be made, until the server is left out
_SAY_SECONDS = 30.0  # seconds between lines on failed attempts
_VOLATILE = ("id", "object", "created", "permission")  # of an entry of /v1/models: other after a restart, or known
_SAME, _UNLIKE = 8, 100  # prompts in a row with the same count, and by how many bytes they differ, until it is told


@dataclass
class RequestBatch:
    """The requests of one call, over all replicas and waits.

    ``attempts``: position of a request -> its failed attempts at its server; ``failed_replicas``: those that are asked
    no more; ``with_reply``: positions of those with a reply; ``is_ending``: a fault ends the call, so no replica begins
    another request; ``is_shared_anew``: nor now, as a replica is back.
    """

    session: aiohttp.ClientSession
    requests: Sequence[ChatRequest]
    on_reply: OnReply
    attempts: Counter[int] = field(default_factory=Counter)
    failed_replicas: set[Replica] = field(default_factory=set)
    with_reply: set[int] = field(default_factory=set)
    is_ending: bool = False
    is_shared_anew: bool = False


@dataclass(eq=False)
class Replica:
    """One server and how it is treated. ``last_fault``: why it did not answer the last time."""

    chat: Chat
    key: InitVar[str | None]
    meter: Meter
    account: Account
    last_fault: str = ""

    def __post_init__(self, key: str | None) -> None:
        self.name, self.url, self.server = self.chat.name, self.chat.url, self.chat.server
        self._failed_connections = 0  # in a row
        self._origin: asyncio.Task[str] | None = None
        self._last_line = -_SAY_SECONDS  # when a failed attempt was last printed
        self._silent_failures = 0  # failed attempts since then
        self._sizes: list[tuple[int, int]] = []  # bytes and counted tokens of the last prompts
        self.headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
        of_server = (self.server.concurrency, self.server.requests_per_minute, self.server.tokens_per_minute)
        self._limiter, self._requests, self._tokens = limits_of(self.url, *of_server)

    @property
    def options_of_request(self) -> dict[str, Any]:
        """What every request to it has, except for its time limit."""
        return {"headers": self.headers, "allow_redirects": False, "proxy": proxy_of(self.url)}

    @property
    def is_gone(self) -> bool:
        """Whether too many connections in a row have failed."""
        return self._failed_connections >= CIRCUIT_FAILURES

    async def work(self, batch: RequestBatch, positions: Sequence[int]) -> None:
        """Answer the requests at ``positions``, starting them in order; returns early when the server is gone, or the
        batch is ending or shared out anew.

        Raises :class:`SettingsError` for what the server refuses for good, :class:`ServerError` after too many
        attempts.
        """
        tasks: set[asyncio.Task[None]] = set()
        try:
            for position in positions:
                await self._limiter.acquire()
                tasks = {task for task in tasks if not task.done() or task.exception()}
                is_over = self.is_gone or batch.is_ending or batch.is_shared_anew
                if is_over or any(task.done() for task in tasks):
                    self._limiter.release()
                    break
                task = asyncio.ensure_future(self._answer(batch, position))
                task.add_done_callback(lambda _: self._limiter.release())
                tasks.add(task)
            if tasks:
                finished, in_flight = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
                if in_flight:  # After a fault. They were paid for: let them come in before it is raised.
                    batch.failed_replicas.add(self)
                    await asyncio.wait(in_flight, timeout=self.server.timeout_seconds)
                for task in finished:
                    task.result()
        finally:
            await stop(tasks)

    async def is_back(self, session: aiohttp.ClientSession) -> bool:
        """Whether the server answers again."""
        if await self._model_list(session) is None:
            return False
        self._failed_connections, self._origin = 0, None
        return True

    async def _model_list(self, session: aiohttp.ClientSession) -> bytearray | None:
        """Return the server's list of models as it came; None where it does not answer."""
        content = bytearray()
        with suppress(aiohttp.ClientError, TimeoutError, OSError):
            limit = aiohttp.ClientTimeout(total=CONNECT_SECONDS)
            url = endpoint(self.url, "/models")
            async with session.get(url, **self.options_of_request, timeout=limit) as response:
                async for chunk in response.content.iter_any():
                    content += chunk
                    if len(content) > MAX_BYTES:
                        break
                return content if response.status < 500 else None
        return None

    async def ask_origin(self, session: aiohttp.ClientSession) -> str:
        """Return the address, and the facts that the server lists about its model."""
        facts: dict[str, Any] = {}
        with suppress(RuntimeError, ValueError, KeyError, TypeError, AttributeError):
            entries = json.loads(await self._model_list(session) or b"")["data"]
            facts = next((entry for entry in entries if entry["id"] == self.chat.options.model), {})
        texts = (f"{name}={value}" for name, value in sorted(facts.items()) if name not in _VOLATILE and value)
        return shown(" ".join([address(self.url), *texts]))

    async def _answer(self, batch: RequestBatch, position: int) -> None:
        completion = await self._complete(batch, position)
        if completion is None:
            return
        batch.with_reply.add(position)
        commit = batch.on_reply(position, completion)
        if commit is not None:
            # In flight until it is on disk: that is all a kill costs. Shielded, for the writer sets the future.
            await asyncio.shield(asyncio.wrap_future(commit))

    async def _complete(self, batch: RequestBatch, position: int) -> Completion | None:
        """Return the completion, or None when the server is gone, or asked no more."""
        request = batch.requests[position]
        body = self.chat.body(request)
        max_tokens = self.chat.max_tokens(request)
        estimate = len(body) / _BYTES_A_TOKEN + max_tokens
        empty_replies = 0
        while True:
            await self._requests.spend(1)
            await self._tokens.spend(estimate)
            if batch.is_ending or self in batch.failed_replicas:
                return None
            try:
                completion = await self._pay(batch.session, body, max_tokens)
            except PassingFault as fault:
                self.meter.add(self.name, retries=1)
                self.last_fault = str(fault)
                if fault.absent:
                    self._failed_connections += 1
                    self._say(f"{fault} (waiting for it up to {self.server.patience_seconds:g} s)")
                    if self.is_gone:
                        return None
                    await asyncio.sleep(pause(self._failed_connections))
                    continue
                attempt = batch.attempts[position] = batch.attempts[position] + 1
                is_proof = fault.of_prompt and attempt >= self.server.attempts and await self._answers(batch, body)
                if not is_proof or attempt == self.server.attempts:  # the last may have met a short outage
                    seconds = pause(attempt) if is_proof else self._pause_after(fault, attempt, request.group)
                    wait = f", the next in {seconds:.0f} s" if fault.after else ""
                    self._say(f"{fault} (attempt {attempt} of {self.server.attempts}){wait}", seconds >= _SAY_SECONDS)
                    await asyncio.sleep(seconds)
                    continue
                completion = self._without_reply(fault)
            except RefusedRequest as refusal:
                if not await self._answers(batch, body):
                    raise
                completion = self._without_reply(refusal)
            self._failed_connections = 0
            if self._origin is None:
                self._origin = asyncio.ensure_future(self.ask_origin(batch.session))
            completion = replace(self.chat.fitted(completion, request), origin=await asyncio.shield(self._origin))
            self._limiter.succeeded()
            self._look_at_size(len(body), completion.prompt_tokens)
            if completion.prompt_tokens:
                self._tokens.correct(estimate - tokens_used(completion, body, max_tokens))
            if not completion.is_empty or empty_replies >= _EMPTY_RETRIES:
                return completion
            empty_replies += 1
            self.meter.add(self.name, retries=1, **completion.tokens)  # it was paid for

    def _without_reply(self, fault: QuitError) -> Completion:
        """Return what stands for the reply to a prompt that alone has a fault."""
        self.chat.refusal = f"{str(fault).rstrip('.')}. Other prompts it answers."
        return Completion("", replies.withheld(f"failed: {fault}"))

    async def _answers(self, batch: RequestBatch, body: bytes) -> bool:
        """Whether the server answers another prompt, of one word, with all else as in ``body``."""
        other = json.loads(body) | {"messages": [{"role": "user", "content": "Hello"}]}
        with suppress(PassingFault, SettingsError):
            completion = await self._pay(
                batch.session, json.dumps(other).encode(), other[self.chat.options.token_field]
            )
            self.meter.add(self.name, **completion.tokens)
            return True
        return False

    def _look_at_size(self, size: int, tokens: int) -> None:
        """Say once that prompts of different size (bytes) in a row have the same count: were they cut?"""
        self._sizes = [*self._sizes, (size, tokens)][-_SAME:]
        (least, _), (most, _), counts = min(self._sizes), max(self._sizes), {count for _, count in self._sizes}
        if len(self._sizes) == _SAME and most - least > _UNLIKE and counts == {tokens} != {0}:
            sizes = f"{least:,} to {most:,} bytes"
            cure = "Are they cut without a word? Serve a longer context (Ollama: OLLAMA_CONTEXT_LENGTH)"
            self.chat.tell("cut", f"counts {tokens:,} tokens for each of {_SAME} prompts of {sizes}. {cure}.")

    def _say(self, text: str, at_once: bool = False) -> None:
        """Print the first failed attempt at once, then at most one every half a minute, or each long pause."""
        now = time.monotonic()
        if now - self._last_line < _SAY_SECONDS and not at_once:
            self._silent_failures += 1
            return
        failures = counted(self._silent_failures, "more failed attempt")
        more = f" ({failures} since the last such line)" if self._silent_failures else ""
        self._last_line, self._silent_failures = now, 0
        note(f"{self.name}: {self.url}: {text}{more}", loud=True)

    def _pause_after(self, fault: PassingFault, attempts: int, group: str) -> float:
        """Return the seconds until a request is sent again; raises :class:`ServerError` after its last attempt."""
        self._failed_connections = 0
        if fault.overloaded:
            self._limiter.overloaded()
        if attempts >= self.server.attempts:
            again = f"run the same command again when it is well, or raise attempts of the server {self.server.name}"
            remedy = self.server.remedy_for(str(fault)) if "CERTIFICATE" in str(fault) else f"{again} in the profile."
            raise ServerError(
                f"{self.url} ({self.name}) failed {attempts} times on one request (of {group}); the last time: "
                f"{fault}. What it answered before is kept; {remedy}"
            ) from fault
        return pause(attempts, fault.after)

    async def _pay(self, session: aiohttp.ClientSession, body: bytes, max_tokens: int) -> Completion:
        """Ask once, within the cap. A reply that did not come or cannot be read counts as paid."""
        ledger, worst = self.account.ledger, self.account.worst(body, max_tokens)
        await ledger.reserve(worst)
        cost, assumed = worst, True
        try:
            status, content = await self._ask(session, body)
            counts = replies.counts_of(content)
            cost, assumed = self.account.actual(counts, worst), not (counts.prompt_tokens and counts.completion_tokens)
            if counts.completion_tokens > max_tokens or not cost.fits(worst):
                ledger.end(
                    f"{self.url} counts {counts.prompt_tokens:,} prompt and {counts.completion_tokens:,} reply tokens "
                    f"for a request of {self.name} with {len(body):,} bytes and room for {max_tokens:,}"
                )
            return self.chat.parse(content, status)
        except PassingFault as fault:
            if fault.is_free or fault.absent:
                cost, assumed = Amount(), False
            raise
        finally:
            ledger.settle(worst, cost, assumed=assumed)
            self.meter.add(self.name, assumed_cost=cost.cost * assumed, assumed_tokens=cost.tokens * assumed)

    async def _ask(self, session: aiohttp.ClientSession, body: bytes) -> tuple[int, bytearray]:
        """Return status and body of a reply, or of a refusal that :meth:`parse` reads."""
        url, content = endpoint(self.url, "/chat/completions"), bytearray()
        try:
            async with session.post(url, data=body, **self.options_of_request) as response:
                async for chunk in response.content.iter_any():  # decompressed
                    content += chunk
                    if len(content) > MAX_BYTES:
                        break
                status = replies.status_of(response.status, content)
                if status != 200 and not replies.refusal_of(status, content)[0]:
                    raise self.chat.fault(status, content, response.headers)
        except aiohttp.ConnectionTimeoutError:
            raise PassingFault(f"no connection within {CONNECT_SECONDS:g} s", absent=True) from None
        except TimeoutError:
            raise PassingFault(f"no reply within {self.server.timeout_seconds:g} s", overloaded=True) from None
        except (aiohttp.ClientError, OSError) as error:
            absent = isinstance(error, aiohttp.ClientConnectorError) and not isinstance(error, aiohttp.ClientSSLError)
            what = "no connection" if absent else "the connection broke"
            text = f"{what}: {shown(str(error) or type(error).__name__)}"
            raise PassingFault(text, absent=absent, of_prompt=not absent) from None
        if len(content) > MAX_BYTES:
            raise PassingFault(f"a reply of more than {MAX_BYTES >> 20} MiB", of_prompt=True)
        return status, content


async def stop(tasks: Iterable[asyncio.Task[None]]) -> None:
    """Cancel tasks and wait until they have ended."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def tokens_used(completion: Completion, body: bytes, max_tokens: int) -> int:
    """Return the tokens that a request costs of ``tokens_per_minute``: the server's count, as far as it can be true.

    A token is a byte at least. A server that reports more would stop the requests after this one for days.
    """
    return min(completion.prompt_tokens + completion.completion_tokens, len(body) + max_tokens)

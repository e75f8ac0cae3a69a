"""A model behind a vendor's batch endpoints: half the price, replies within a day.

``generate`` submits what is missing and raises ``Waiting``; a later call collects.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from itertools import filterfalse
from typing import Any

import aiohttp

from quit.common.endpoints import address
from quit.common.progress import note
from quit.errors import ServerError, SettingsError, Waiting
from quit.models.generation.base import ChatRequest, ModelOptions, OnReply, cache_key
from quit.models.generation.batch_notes import BatchLine, BatchNotes, NotedRequest, batch_notes
from quit.models.generation.chat import Chat
from quit.models.generation.ledger import Account, Amount
from quit.models.generation.limits import pause
from quit.models.generation.meter import Meter
from quit.models.generation.replica import MAX_BYTES, PassingFault, Replica
from quit.models.generation.reply import UnaskedThoughts, counts_of, meaning_of, refusal_of
from quit.models.generation.server import run
from quit.models.generation.serving import CONNECT_SECONDS, endpoint
from quit.settings import ServerSettings
from quit.text.secrets import shown
from quit.text.vendors import refusal
from quit.text.words import counted

MAX_REQUESTS, MAX_FILE_BYTES = 50_000, 190 << 20  # of a batch, as OpenAI has it
_MAX_REPLIES = 1 << 30  # bytes of a file of replies
_FOR_GOOD = 1 << 20  # failures of a request that is refused for good
_PAGES = 1000  # of a server's list of batches, 100 each
_BYTES_A_TOKEN = 4  # for a vendor's limit of tokens that wait
_SHARE = 0.9  # of that limit that is used
_LIMIT = re.compile(r"limit:? *([\d,_.]{4,})", re.IGNORECASE)  # in its refusal
_PATH = "/v1/chat/completions"


class _NotFound(SettingsError):
    """A path that the server does not have."""


class BatchGenerator:
    """A model on a server that takes batches. Identity and replies are those of the model asked one by one."""

    def __init__(
        self, name: str, options: ModelOptions, server: ServerSettings, meter: Meter, account: Account
    ) -> None:
        self.name = name
        self.identity = options.identity
        self._server = server
        self._account = account
        self._meter = meter
        self._model = f"{address(server.urls()[0])} {options.model}"
        self._chat = Chat(name, server.urls()[0], options, server, [])
        self._replica = Replica(self._chat, server.key(), meter, account)

    def generate(self, requests: Sequence[ChatRequest], on_reply: OnReply) -> None:
        """See :class:`quit.models.generation.base.Generator`. Raises ``Waiting`` while replies are missing."""
        with batch_notes(self._model) as notes:
            run(self._generate(notes, requests, on_reply))

    def release(self) -> None:
        """See :class:`quit.models.generation.base.Generator`: there is nothing in this process."""

    async def _generate(self, notes: BatchNotes, requests: Sequence[ChatRequest], on_reply: OnReply) -> None:
        positions = {cache_key(self.identity, request): position for position, request in enumerate(requests)}
        timeout = aiohttp.ClientTimeout(total=None, connect=CONNECT_SECONDS, sock_read=self._server.timeout_seconds)
        async with aiohttp.ClientSession(timeout=timeout, trust_env=False) as session:
            tags = {noted.tag for noted in notes.requests(positions)}
            for tag, identity, _ in notes.batches():
                if tag in tags:
                    await self._look(session, notes, tag, identity)
            collected_keys = await self._hand_over(session, notes, requests, positions, on_reply)
            noted = {request.key: request for request in notes.requests(positions)}
            missing = [key for key in positions if key not in collected_keys]
            open_keys = [key for key in missing if not (key in noted and noted[key].tag)]
            self._check(notes, [noted[key] for key in open_keys if key in noted])
            limit = self._limit(notes)
            for portion in self._portions(requests, positions, open_keys, limit):
                if (waiting := notes.waiting()) and waiting + _tokens(portion) > limit:
                    break  # one after the other
                await self._submit(session, notes, portion)
        if len(collected_keys) < len(positions):
            raise Waiting(self._waiting(notes, positions))
        notes.forget(positions)

    def _waiting(self, notes: BatchNotes, keys: Iterable[bytes]) -> str:
        requests = Counter(request.tag for request in notes.requests(keys) if request.tag)
        mine = [(identity, requests[tag], when) for tag, identity, when in notes.batches() if tag in requests]
        if not mine:
            return (
                f"{self.name} waits for room at {self._chat.url}, where some {self._limit(notes):,.0f} tokens may "
                "wait at a time (batch_tokens of the server). Run the same command again later."
            )
        since = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(mine[0][2]))
        names = ", ".join(f"{identity} ({counted(count, 'request')})" for identity, count, _ in mine)
        return (
            f"{self.name} waits for batches of {self._chat.url} since {since}: {names}. Run the same command again "
            "later: it collects the replies and goes on."
        )

    def _check(self, notes: BatchNotes, requests: Iterable[NotedRequest]) -> None:
        """Raise the fault of a request that is not asked again. The next run asks anew for all of them."""
        failed = [request for request in requests if request.failures >= self._server.attempts]
        if not failed:
            return
        notes.forget(request.key for request in failed)
        worst = max(failed, key=lambda request: (request.failures, request.fault))
        if worst.failures >= _FOR_GOOD:
            raise SettingsError(worst.fault)
        raise ServerError(
            f"{self._chat.url} ({self.name}) failed {worst.failures} times on {counted(len(failed), 'request')} of a "
            f"batch; the last time: {worst.fault}. What it answered before is kept."
        )

    def _limit(self, notes: BatchNotes) -> float:
        """Return how many tokens may wait at the server: the setting, or what its refusals say."""
        return min(notes.limit(), self._server.batch_tokens or math.inf)

    async def _look(self, session: aiohttp.ClientSession, notes: BatchNotes, tag: str, identity: str | None) -> None:
        """Collect a batch that has ended. One that was noted and never made is forgotten."""
        identity = identity or await self._find(session, tag)
        if identity is None:
            self._close(notes, tag, [], None)
            return
        notes.set_identity(tag, identity)
        try:
            batch = await self._json(session, "GET", f"/batches/{identity}")
            state = str(batch.get("status"))
            subject = f"{self._chat.url} describes the batch {shown(identity)} of {self.name}"
            what = meaning_of(self._server, "batch", state, subject)
            files = [batch[name] for name in ("output_file_id", "error_file_id") if batch.get(name)]
            paths = [f"/files/{file}/content" for file in files if what == "ended"]
            contents = [await self._call(session, "GET", path, max_bytes=_MAX_REPLIES) for path in paths]
        except _NotFound:
            raise SettingsError(
                f"{self._chat.url} does not find the batch {shown(identity)} of {self.name}, or its replies (HTTP "
                "404): it was deleted, or the API key is of another project. Use the key it was made with; or set "
                f"batch = false for the server {self._server.name}, which pays for its requests again, one by one."
            ) from None
        if what == "ended":
            lines = [line for content in contents for line in content.split(b"\n") if line.strip()]
            entries, broken = [*filter(None, map(self._entry, lines))], [*filterfalse(self._entry, lines)]
            why = f"the batch is {state} {json.dumps(batch['errors']) if batch.get('errors') else ''}".strip()
            if broken:
                what = f"{counted(len(broken), 'line')} of the replies in the batch {shown(identity)} cannot be read"
                note(f"{self.name}: {what}, such as {shown(broken[0].decode(errors='replace'), 60)!r}.", loud=True)
            is_full = not entries and refusal(why) == "waiting" and self._lower(notes, tag, why)
            self._close(notes, tag, entries, None if is_full else shown(why), are_all_read=not broken)

    def _lower(self, notes: BatchNotes, tag: str, why: str) -> bool:
        """Note how many tokens may wait at a server that refuses a batch for that: what it says, or half of those.

        False for a single request, which fails like any other.
        """
        tokens, count = notes.size(tag)
        limits = (_SHARE * float(re.sub(r"\D", "", number)) for number in _LIMIT.findall(why))
        notes.set_limit(min((limit for limit in limits if limit < tokens), default=tokens / 2))
        return count > 1

    def _close(
        self, notes: BatchNotes, tag: str, lines: Sequence[BatchLine], why: str | None, are_all_read: bool = True
    ) -> None:
        """Note and pay what came of a batch; ``why`` requests have no reply, None: it was never made."""
        reserve, owner = notes.close(tag, lines, why)
        ledger = self._account.ledger
        counts = [counts_of(line.reply.encode()) for line in lines if line.reply]
        cost = Amount.total(self._account.actual(count, Amount()) for count in counts)
        if not are_all_read or not all(count.prompt_tokens for count in counts):
            cost = Amount(*map(max, cost, reserve))
        # What another workspace has reserved stays reserved there: taken back here, it would be spent here once more.
        ledger.settle(reserve if owner == ledger.owner else Amount(), cost, request=False)
        if owner == ledger.owner and reserve != Amount() and not cost.fits(reserve):
            ledger.end(
                f"{self._chat.url} counts {cost.tokens:,.0f} tokens for a batch of {self.name} with room for "
                f"{reserve.tokens:,.0f}"
            )

    def _entry(self, line: bytearray) -> BatchLine | None:
        """Return what a line of an output or error file says; None of another line."""
        try:
            entry = json.loads(line)
            key, response = bytes.fromhex(entry["custom_id"]), entry.get("response") or {}
            reply = response if "choices" in response else response.get("body")
            reply = json.loads(reply) if isinstance(reply, str) else reply
            is_completion = isinstance(reply, dict) and "choices" in reply
            status = int(response.get("status_code") or (200 if is_completion else 0))
            body = json.dumps(reply)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None
        if status == 200 or refusal_of(status, body.encode())[0] in ("withheld", "long"):
            return BatchLine(body, 0, None, key)
        fault = self._chat.fault(status, body.encode(), {}) if status >= 300 else None
        if isinstance(fault, SettingsError):
            return BatchLine(None, _FOR_GOOD, str(fault), key)
        return BatchLine(None, 0, str(fault or shown(json.dumps(entry.get("error")))), key)

    async def _hand_over(
        self,
        session: aiohttp.ClientSession,
        notes: BatchNotes,
        requests: Sequence[ChatRequest],
        positions: dict[bytes, int],
        on_reply: OnReply,
    ) -> set[bytes]:
        """Hand over the replies that have come, and return their keys. An empty one is asked for once more.

        Raises ``SettingsError`` after that for one that these settings do not take; the next run asks anew for one with
        thoughts.

        What is on disk then is forgotten here: else it would be given out again once it was deleted there.
        """
        replied = [request for request in notes.requests(positions) if request.reply is not None]
        origin = await self._replica.ask_origin(session) if replied else ""
        commits: dict[bytes, Future[None]] = {}
        collected_keys, again, lost_keys = set(), [], []
        faults: list[SettingsError] = []
        for key, _, failures, reply, _ in replied:
            try:
                completion = self._chat.parse((reply or "").encode(), 400)
            except PassingFault as fault:
                again.append((str(fault), key))
                continue
            except SettingsError as fault:  # raised below: the replies behind it are paid for
                faults.append(fault)
                if isinstance(fault, UnaskedThoughts):  # others may be read, by other settings
                    lost_keys.append(key)
                continue
            completion = self._chat.fitted(completion, requests[positions[key]])
            if completion.is_empty and not failures:
                again.append(("an empty reply", key))
                self._meter.add(self.name, retries=1, **completion.tokens)  # it was paid for
                continue
            collected_keys.add(key)
            commit = on_reply(positions[key], replace(completion, origin=origin))
            if commit is not None:
                commits[key] = commit
        for commit in commits.values():
            await asyncio.wrap_future(commit)
        notes.forget([*commits, *lost_keys])
        notes.fail(again)
        if faults:
            raise faults[0]
        return collected_keys

    def _portions(
        self, requests: Sequence[ChatRequest], positions: dict[bytes, int], keys: Iterable[bytes], max_tokens: float
    ) -> Iterable[list[tuple[bytes, bytes, Amount]]]:
        """Yield (key, line, worst case) of the requests, cut to what a batch may hold, ``max_tokens`` among that."""
        max_bytes = min(MAX_FILE_BYTES, max_tokens * _BYTES_A_TOKEN)
        portion: list[tuple[bytes, bytes, Amount]] = []
        size = 0
        for key in keys:
            request = requests[positions[key]]
            body = self._chat.body(request)
            head = json.dumps({"custom_id": key.hex(), "method": "POST", "url": _PATH})
            line = f'{head[:-1]}, "body": '.encode() + body + b"}\n"
            if portion and (len(portion) == MAX_REQUESTS or size + len(line) > max_bytes):
                yield portion
                portion, size = [], 0
            portion.append((key, line, self._account.worst(body, self._chat.max_tokens(request))))
            size += len(line)
        if portion:
            yield portion

    async def _submit(
        self, session: aiohttp.ClientSession, notes: BatchNotes, portion: list[tuple[bytes, bytes, Amount]]
    ) -> None:
        """Make a batch. It is noted before, and found again by its tag if it is made and not noted."""
        worst, ledger = Amount.total(amount for _, _, amount in portion), self._account.ledger
        await ledger.reserve(worst, request=False)
        reserve = worst if ledger.is_capped else Amount()  # else a later build, with a cap, would take it back
        tag = uuid.uuid4().hex
        notes.add(tag, [key for key, _, _ in portion], _tokens(portion), reserve, ledger.owner)
        content = b"".join(line for _, line, _ in portion)

        def form() -> dict[str, Any]:
            data = aiohttp.FormData({"purpose": "batch"})
            data.add_field("file", content, filename=f"quit-{tag}.jsonl", content_type="application/jsonl")
            return {"data": data}

        file = (await self._json(session, "POST", "/files", form))["id"]
        order = {"input_file_id": file, "endpoint": _PATH, "completion_window": "24h", "metadata": {"quit": tag}}
        try:
            batch = (await self._json(session, "POST", "/batches", lambda: {"json": order}, attempts=1))["id"]
        except PassingFault as fault:  # it may have been made
            batch = await self._find(session, tag)
            if batch is None:
                raise ServerError(f"{self._chat.url} takes no batch of {self.name}: {fault}.") from None
        notes.set_identity(tag, batch)

    async def _find(self, session: aiohttp.ClientSession, tag: str) -> str | None:
        """Return the id of the batch with a tag; None where the server has none."""
        params = {"limit": "100"}
        for _ in range(_PAGES):
            page = await self._json(session, "GET", "/batches", partial(dict, params=params))
            batches = page.get("data") or []
            for batch in batches:
                if (batch.get("metadata") or {}).get("quit") == tag:
                    return str(batch["id"])
            if not page.get("has_more") or not batches:
                break
            params["after"] = batches[-1]["id"]
        return None

    async def _json(self, *arguments: Any, **options: Any) -> dict[str, Any]:
        """Return the object that the server answers with, as :meth:`_call`."""
        answer = await self._call(*arguments, **options)
        try:
            value = json.loads(answer)
            if isinstance(value, dict) and ("id" in value or "data" in value):
                return value
        except ValueError:
            pass
        raise ServerError(
            f"{self._chat.url} answers {self.name}'s batch with {shown(answer.decode(errors='replace'))}."
        )

    async def _call(
        self,
        session: aiohttp.ClientSession,
        method: str,
        path: str,
        content: Callable[[], dict[str, Any]] = dict,
        attempts: int | None = None,
        max_bytes: int = MAX_BYTES,
    ) -> bytearray:
        """Return what the server answers, up to a chunk over ``max_bytes``; faults that may pass are tried again."""
        attempts = attempts or self._server.attempts
        for attempt in range(1, attempts + 1):
            try:
                answer = bytearray()
                async for chunk in self._chunks(session, method, path, content()):
                    answer += chunk
                    if len(answer) > max_bytes:
                        break
                return answer
            except PassingFault as fault:
                self._meter.add(self.name, retries=1)
                if attempt == attempts:
                    if attempts == 1:
                        raise
                    raise ServerError(f"{self._chat.url} ({self.name}) failed {attempts} times: {fault}.") from None
                await asyncio.sleep(pause(attempt, fault.after))
        raise AssertionError("the last attempt returns or raises")

    async def _chunks(
        self, session: aiohttp.ClientSession, method: str, path: str, content: dict[str, Any]
    ) -> AsyncIterator[bytes]:
        options = self._replica.options_of_request
        options["headers"] = {name: value for name, value in options["headers"].items() if name != "Content-Type"}
        try:
            async with session.request(method, endpoint(self._chat.url, path), **options, **content) as response:
                if response.status == 404:
                    raise _NotFound(
                        f"{self._chat.url} takes no batches (HTTP 404 for {path}): set batch = false for the server "
                        f"{self._server.name}."
                    )
                if response.status != 200:
                    raise self._chat.fault(response.status, await response.content.read(MAX_BYTES), response.headers)
                async for chunk in response.content.iter_any():
                    yield chunk
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            raise PassingFault(f"no answer: {shown(str(error) or type(error).__name__)}") from None


def _tokens(portion: Sequence[tuple[bytes, bytes, Amount]]) -> float:
    return sum(len(line) for _, line, _ in portion) / _BYTES_A_TOKEN

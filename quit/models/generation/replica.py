"""One server: sends requests in order, tries again where that can help, and says clearly where it cannot."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from quit.errors import QuitError, ServerError, SettingsError
from quit.models.generation.base import ChatRequest, Completion, Done, ModelOptions, refuse_thinking
from quit.models.generation.manners import Budget, Circuit, Limiter, Patience, retry_after
from quit.models.generation.meter import Meter
from quit.secrets import repeats_a_key, shown
from quit.settings import ServerSettings

_AGAIN = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529})
_OVERLOADED = frozenset({429, 503, 529})
_BYTES_A_TOKEN = 4.0  # for token budgets before the server's own count is known
_MOST = 4 << 20  # bytes of a reply, after decompression; a thousand times what a long one has
_QUOTED = 1 << 16  # bytes of it that are looked at for a message


class _Passing(QuitError):
    """A fault that another attempt may overcome."""

    def __init__(
        self, message: str, *, after: float | None = None, overloaded: bool = False, absent: bool = False
    ) -> None:
        super().__init__(message)
        self.after = after
        self.overloaded = overloaded
        self.absent = absent


class Replica:
    """A base URL such as ``http://127.0.0.1:8000/v1`` and the manners kept towards it."""

    def __init__(
        self, name: str, url: str, key: str | None, options: ModelOptions, server: ServerSettings, meter: Meter
    ) -> None:
        self.name = name
        self.url = url.rstrip("/")
        self.circuit = Circuit(server.circuit_failures)
        self._headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
        self._key_variable = server.api_key_env
        self._options = options
        self._server = server
        self._meter = meter
        self._limiter = Limiter(server.concurrency)
        self._requests = Budget(server.requests_per_minute)
        self._tokens = Budget(server.tokens_per_minute)
        self._patience = Patience(server.backoff_seconds, server.backoff_cap_seconds)

    async def work(
        self,
        session: aiohttp.ClientSession,
        requests: Sequence[ChatRequest],
        places: Sequence[int],
        done: Done,
        attempts: Counter[int],
    ) -> None:
        """Answer ``requests[place]`` for each place, starting them in order; returns early when the circuit opens.

        ``attempts``: place -> failed attempts so far, which this adds to. Raises :class:`SettingsError` for what the
        server refuses for good, :class:`ServerError` after too many attempts.
        """
        running: set[asyncio.Task[None]] = set()
        try:
            for place in places:
                await self._limiter.acquire()
                faulty = [each for each in running if each.done() and each.exception()]
                running = {each for each in running if not each.done()}
                if faulty or self.circuit.is_open:
                    self._limiter.release()
                    for each in faulty:
                        each.result()
                    break
                running.add(asyncio.ensure_future(self._one(session, requests[place], place, done, attempts)))
            while running:
                finished, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for each in finished:
                    each.result()
        except QuitError:
            # What is in flight was paid for: let it come in before the fault is told.
            if running:
                await asyncio.wait(running, timeout=self._server.timeout_seconds)
            raise
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    async def is_back(self, session: aiohttp.ClientSession) -> bool:
        """Whether the server answers again; closes the circuit if so."""
        try:
            limit = aiohttp.ClientTimeout(total=self._server.connect_seconds)
            url = f"{self.url}/models"
            async with session.get(url, headers=self._headers, allow_redirects=False, timeout=limit) as response:
                if response.status >= 500:
                    return False
        except (aiohttp.ClientError, TimeoutError, OSError):
            return False
        self.circuit.success()
        return True

    async def _one(
        self, session: aiohttp.ClientSession, request: ChatRequest, place: int, done: Done, attempts: Counter[int]
    ) -> None:
        try:
            completion = await self._with_retries(session, request, place, attempts)
            kept = None if completion is None else done(place, completion)
            if kept is not None:
                # Its place is free once it is on disk: what a kill costs is what is in flight. Shielded, for the writer sets the future.
                await asyncio.shield(asyncio.wrap_future(kept))
        finally:
            self._limiter.release()

    async def _with_retries(
        self, session: aiohttp.ClientSession, request: ChatRequest, place: int, attempts: Counter[int]
    ) -> Completion | None:
        """Return the completion, or None when the server is gone (the circuit is open)."""
        body = self._body(request)
        estimate = len(body) / _BYTES_A_TOKEN + request.max_tokens
        empty = 0
        while True:
            await self._requests.spend(1)
            await self._tokens.spend(estimate)
            try:
                completion = await self._ask(session, body)
            except _Passing as fault:
                self._meter.add(self.name, retries=1)
                if fault.absent:
                    self.circuit.failure(str(fault))
                    if self.circuit.is_open:
                        return None
                    await asyncio.sleep(self._patience.pause(self.circuit.failed))
                    continue
                self.circuit.success()
                if fault.overloaded:
                    self._limiter.overloaded()
                attempts[place] += 1
                if attempts[place] >= self._server.attempts:
                    raise ServerError(
                        f"{self.url} ({self.name}) failed {attempts[place]} times on one request; the last time: "
                        f"{fault}. What it answered before is kept; run the same command again when it is well."
                    ) from fault
                await asyncio.sleep(self._patience.pause(attempts[place], fault.after))
                continue
            self.circuit.success()
            self._limiter.succeeded()
            if completion.prompt_tokens:
                self._tokens.correct(estimate - tokens_used(completion, body, request.max_tokens))
            if not completion.text.strip() and empty < self._server.empty_retries:
                empty += 1
                self._meter.add(self.name, retries=1)
                continue
            return completion

    async def _ask(self, session: aiohttp.ClientSession, body: bytes) -> Completion:
        url = f"{self.url}/chat/completions"
        try:
            async with session.post(url, data=body, headers=self._headers, allow_redirects=False) as response:
                content = await _content(response)
                if response.status != 200:
                    raise self._fault(response.status, content, response.headers)
        except TimeoutError:
            raise _Passing(f"no reply within {self._server.timeout_seconds:g} s", overloaded=True) from None
        except (aiohttp.ClientError, OSError) as error:
            absent = isinstance(error, aiohttp.ClientConnectorError) and not isinstance(error, aiohttp.ClientSSLError)
            what = "no connection" if absent else "the connection broke"
            raise _Passing(f"{what}: {shown(str(error) or type(error).__name__)}", absent=absent) from None
        if len(content) > _MOST:
            raise _Passing(f"a reply of more than {_MOST >> 20} MiB")
        return self._completion(content)

    def _completion(self, content: bytes) -> Completion:
        try:
            reply = json.loads(content)
            choice = reply["choices"][0]
            message = choice["message"]
            text = message.get("content") or ""
            reason = str(choice.get("finish_reason") or "stop")
            usage = reply.get("usage") or {}
            cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
            made = Completion(
                text, reason, usage.get("prompt_tokens") or 0, usage.get("completion_tokens") or 0, cached
            )
        except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError) as error:
            raise _Passing(f"a reply that is no chat completion ({error}): {_quoted(content)}") from None
        if reason not in ("stop", "length"):
            raise _Passing(f"a reply that was not finished ({shown(reason)})")
        thinking = message.get("reasoning_content") or message.get("reasoning")
        refuse_thinking(f"{self.name} ({self.url})", text, thinking)
        if repeats_a_key(text):
            raise _Passing("a reply that repeats the API key")
        return made

    def _fault(self, status: int, content: bytes, headers: Mapping[str, str]) -> QuitError:
        message = f"HTTP {status}: {_quoted(content)}"
        if 300 <= status < 400:
            host = _host(headers.get("Location", ""))
            return SettingsError(
                f"{self.url} redirects requests of {self.name} to {host} (HTTP {status}), and "
                "redirects are not followed. If the server is there, write its address into base_urls."
            )
        if status in _AGAIN:
            wait = retry_after(headers.get("Retry-After"))
            if wait is not None:
                wait = min(wait, self._server.retry_after_cap_seconds)
            return _Passing(message, after=wait, overloaded=status in _OVERLOADED)
        if status in (401, 403):
            variable = self._key_variable or "api_key_env in the profile, and the variable it names"
            return SettingsError(f"{self.url} refuses the API key of {self.name} ({message}). Set {variable}.")
        if status == 404:
            return SettingsError(
                f"{self.url} has no model {self._options.model!r} or no chat completions ({message}). "
                f"Its models: curl {self.url}/models"
            )
        return SettingsError(f"{self.url} refuses a request of {self.name}: {message}")

    def _body(self, request: ChatRequest) -> bytes:
        payload: dict[str, Any] = {
            "model": self._options.model,
            "messages": request.messages(),
            "max_tokens": request.max_tokens,
            "temperature": request.temperature,
            "top_p": 1,
            "seed": request.sample,
            "stream": False,
            **request.sampling,
        }
        if self._server.flavour == "vllm":
            # The server would apply the model's generation_config.json otherwise.
            payload |= {"top_k": 0, "min_p": 0, "repetition_penalty": 1}
            if request.choices:
                payload["structured_outputs"] = {"choice": list(request.choices)}
        if self._options.template_options:
            payload["chat_template_kwargs"] = dict(self._options.template_options)
        return json.dumps(payload | dict(self._options.extra), ensure_ascii=False).encode()


async def _content(response: aiohttp.ClientResponse) -> bytes:
    """Return the body, decompressed; where it exceeds ``_MOST`` only its beginning, which exceeds that too."""
    content = bytearray()
    async for chunk in response.content.iter_any():
        content += chunk
        if len(content) > _MOST:
            break
    return bytes(content)


def _quoted(content: bytes) -> str:
    """Return what a body says, for a message: the error's text where it is one in JSON."""
    text = content[:_QUOTED].decode("utf-8", "replace")
    try:
        reply = json.loads(text)
        error = reply.get("error", reply)
        text = str(error.get("message") or text) if isinstance(error, dict) else str(error)
    except (ValueError, AttributeError, RecursionError):
        pass
    return shown(text)


def _host(location: str) -> str:
    """Return the host and port that a redirect points to, without user, path and query."""
    try:
        return shown(urlsplit(location).netloc.rpartition("@")[2]) or "another path of its own"
    except ValueError:
        return "an address that is none"


def tokens_used(completion: Completion, body: bytes, max_tokens: int) -> int:
    """Return the tokens that a request counts for in ``tokens_per_minute``: what the server says, as far as it can be true.

    A token is a byte at least. A server that reports more would stop the requests after this one for days.
    """
    return min(completion.prompt_tokens + completion.completion_tokens, len(body) + max_tokens)

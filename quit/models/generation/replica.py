"""One server: sends requests in order and within its limits, and repeats those whose fault may pass.

All of it runs on one event loop, so there are no locks here.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import InitVar, dataclass, field, replace
from typing import Any, get_args
from urllib.parse import urlsplit

import aiohttp

from quit.common.endpoints import proxy_of
from quit.common.progress import note
from quit.errors import QuitError, ServerError, SettingsError
from quit.models.generation import reply as replies
from quit.models.generation.base import CHOICE, FILTERED, ChatRequest, Completion, ModelOptions, OnReply, choice_of
from quit.models.generation.ledger import Account, Amount
from quit.models.generation.limits import limits_of, pause, retry_after
from quit.models.generation.meter import Meter
from quit.models.generation.reply import OVERLOADED, PassingFault
from quit.models.generation.serving import CONNECT_SECONDS, endpoint, is_about_key
from quit.settings import ServerSettings
from quit.settings.models import Omittable
from quit.text.secrets import contains_secret, shown
from quit.text.words import counted

_AGAIN = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529})  # HTTP codes of passing faults
_NOT_BEGUN = OVERLOADED | {409, 425}  # nobody is charged for these; behind a gateway's, the model may have replied
_BYTES_A_TOKEN = 4.0  # for token budgets before the server's own count is known
CHARACTERS_A_TOKEN = 128  # of a reply, at most: about the longest entry of common vocabularies, a run of spaces
MAX_BYTES = 4 << 20  # bytes of a reply, after decompression; a thousand times what a long one has
_RETRY_AFTER_CAP = 300.0  # seconds of a Retry-After that are honoured
_EMPTY_RETRIES = 1  # times that an empty reply is asked for again before it counts
CIRCUIT_FAILURES = 5  # connections in a row that cannot be made, until the server is left out
_SAY_SECONDS = 30.0  # seconds between lines on failed attempts
_CURES = {
    "max_tokens": 'token_field = "max_completion_tokens"',
    "max_completion_tokens": 'token_field = "max_tokens"',
    "reasoning_effort": "no effort",
    "response_format": "constrained = false",
    "chat_template_kwargs": "no template_options",
}
"""Field of a request that a server may refuse -> the setting that cures it."""
_VOLATILE = ("id", "object", "created", "permission")  # of an entry of /v1/models: other after a restart, or known
_LONG = " Give the model fewer documents, words or reply tokens (max_new_tokens), or serve a longer context."
_SAME, _UNLIKE = 8, 100  # prompts in a row with the same count, and by how many bytes they differ, until it is told
_NAMES = 3  # model names in replies that are told


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
    """A base URL such as ``http://127.0.0.1:8000/v1``, and how it is treated.

    ``last_fault``: why it did not answer the last time. ``model_names``: those in the replies of all replicas so far.
    """

    name: str
    url: str
    key: InitVar[str | None]
    options: ModelOptions
    server: ServerSettings
    meter: Meter
    account: Account
    model_names: list[str]
    last_fault: str = ""

    def __post_init__(self, key: str | None) -> None:
        self._failed_connections = 0  # in a row
        self._origin: asyncio.Task[str] | None = None
        self._last_line = -_SAY_SECONDS  # when a failed attempt was last printed
        self._silent_failures = 0  # failed attempts since then
        self._said: set[str] = set()
        self._sizes: list[tuple[int, int]] = []  # bytes and counted tokens of the last prompts
        self._refusal = ""
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
            facts = next((entry for entry in entries if entry["id"] == self.options.model), {})
        texts = (f"{name}={value}" for name, value in sorted(facts.items()) if name not in _VOLATILE and value)
        return shown(" ".join([self.url, *texts]))

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
        body = self.body(request)
        max_tokens = self.max_tokens(request)
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
                self._refusal = f"{fault}. Other prompts it answers."
                completion = Completion("", replies.withheld(str(fault)))
            self._failed_connections = 0
            if self._origin is None:
                self._origin = asyncio.ensure_future(self.ask_origin(batch.session))
            completion = replace(self.fitted(completion, request), origin=await asyncio.shield(self._origin))
            self._limiter.succeeded()
            self._look_at_size(len(body), completion.prompt_tokens)
            if completion.prompt_tokens:
                self._tokens.correct(estimate - tokens_used(completion, body, max_tokens))
            if not completion.is_empty or empty_replies >= _EMPTY_RETRIES:
                return completion
            empty_replies += 1
            self.meter.add(self.name, retries=1, **completion.tokens)  # it was paid for

    async def _answers(self, batch: RequestBatch, body: bytes) -> bool:
        """Whether the server answers another prompt, of one word, with all else as in ``body``."""
        other = json.loads(body) | {"messages": [{"role": "user", "content": "Hello"}]}
        with suppress(PassingFault, SettingsError):
            completion = await self._pay(batch.session, json.dumps(other).encode(), other[self.options.token_field])
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
            self.tell("cut", f"counts {tokens:,} tokens for each of {_SAME} prompts of {sizes}. {cure}.")

    def tell(self, kind: str, text: str) -> None:
        """Print the first text of a kind."""
        if kind not in self._said:
            self._said.add(kind)
            note(f"{self.name}: {self.url} {text}", loud=True)

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
            return self.parse(content, status)
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
                    raise self.fault(status, content, response.headers)
        except aiohttp.ConnectionTimeoutError:
            raise PassingFault(f"no connection within {CONNECT_SECONDS:g} s", absent=True) from None
        except TimeoutError:
            raise PassingFault(f"no reply within {self.server.timeout_seconds:g} s", overloaded=True) from None
        except (aiohttp.ClientError, OSError) as error:
            absent = isinstance(error, aiohttp.ClientConnectorError) and not isinstance(error, aiohttp.ClientSSLError)
            what = "no connection" if absent else "the connection broke"
            raise PassingFault(f"{what}: {shown(str(error) or type(error).__name__)}", absent=absent) from None
        if len(content) > MAX_BYTES:
            raise PassingFault(f"a reply of more than {MAX_BYTES >> 20} MiB")
        return status, content

    def parse(self, content: bytes | bytearray, status: int = 200) -> Completion:
        """Return the completion in a reply's body. Raises ``PassingFault`` where it is none, or is not finished.

        The reply to a prompt that is refused, for its content or its length, is empty, like a withheld one.
        """
        try:
            reply = replies.read(content)
            choice = reply["choices"][0]
            message = choice["message"]
            text, thoughts = replies.text_of(message)
            finish_reason = self._ended(str(choice.get("finish_reason") or "stop"))
            if message.get("refusal") and not text:
                finish_reason = FILTERED
            if finish_reason.startswith(FILTERED):
                text = thoughts = ""
            completion = Completion(text, finish_reason, **replies.tokens_of(reply.get("usage")))
        except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError) as error:
            if refused := self._refused(status, content):
                return refused
            if content.startswith(b"data:"):
                raise SettingsError(
                    f"{self.url} streams its replies to {self.name} (server-sent events), although it is asked not to, "
                    "and a stream is not read. Switch that off at the server, or at the proxy before it."
                ) from None
            raise PassingFault(
                f"a reply that is not a chat completion ({error}): {replies.error_text(content)}"
            ) from None
        model = shown(str(reply.get("model") or ""), 80)
        if model and model not in self.model_names and len(self.model_names) < _NAMES:
            self.model_names.append(model)
            if len(self.model_names) > 1:
                before = ", ".join(self.model_names[:-1])
                text = f"{self.name}: {self.url} says that {model!r} replies; so far it was {before!r}"
                note(f"{text}. Was the server started with another model? Its replies are kept as of one.", loud=True)
        thoughts = thoughts or "counted" * bool(completion.thought_tokens)
        answer = replies.answer_of(f"{self.name} ({self.url})", self.options, completion.text, finish_reason, thoughts)
        completion = replace(completion, text=answer)
        if contains_secret(completion.text):
            raise PassingFault("a reply that repeats the API key")
        return completion

    def _ended(self, word: str) -> str:
        """Return the finish reason that a server's word means."""
        what = replies.meaning_of(self.server, "finish", word, f"{self.url} ended a reply to {self.name}")
        if what == "again":
            raise PassingFault(f"a reply that was not finished ({shown(word)})")
        return replies.withheld(word) if what == "withheld" else what

    def _refused(self, status: int, content: bytes | bytearray) -> Completion | None:
        """Return the empty reply to a prompt that an error refuses, None for another error.

        Raises :class:`PassingFault` for a server that still loads its model.
        """
        what, word = replies.refusal_of(status, content)
        if what == "loading":
            raise PassingFault(f"it still loads its model (HTTP {status}: {replies.error_text(content)})", absent=True)
        if what not in ("withheld", "long"):
            return None
        self._refusal = f"{replies.error_text(content).rstrip('.')}.{_LONG if what == 'long' else ''}"
        return Completion("", replies.withheld(word))

    def fitted(self, completion: Completion, request: ChatRequest) -> Completion:
        """Return a completion as its request asks for it: the choice alone; of a server that goes on past
        ``max_tokens``, the first 128 characters per token, as a reply that was cut."""
        if completion.is_refused:
            size = sum(len(message["content"].encode()) for message in request.messages())
            room = f"({size:,} bytes, and {self.max_tokens(request):,} tokens for the reply), which counts as NO ANSWER"
            self.tell(completion.finish_reason, f"refuses a prompt of {request.group} {room}: {self._refusal}")
        text = choice_of(completion.text) if request.choices else completion.text
        limit = CHARACTERS_A_TOKEN * self.max_tokens(request)
        if len(text) > limit:
            return replace(completion, text=text[:limit], finish_reason="length")
        return replace(completion, text=text)

    def fault(self, status: int, content: bytes | bytearray, headers: Mapping[str, str]) -> QuitError:
        """Return what to raise for a reply of another status than 200: a :class:`PassingFault`, or one for good."""
        message = f"HTTP {status}: {replies.error_text(content).rstrip('.')}"
        if 300 <= status < 400:
            host = _host(headers.get("Location", ""))
            return SettingsError(
                f"{self.url} redirects requests of {self.name} to {host} (HTTP {status}), and "
                "redirects are not followed. If the server is there, write its address into base_urls."
            )
        if status in _AGAIN:
            wait = min(retry_after(headers.get("Retry-After")) or 0.0, _RETRY_AFTER_CAP)
            is_free, of_prompt = status in _NOT_BEGUN, status == 500
            return PassingFault(message, wait, status in OVERLOADED, is_free=is_free, of_prompt=of_prompt)
        if is_about_key(status, content):
            return SettingsError(f"{self.url} refuses the API key of {self.name} ({message}). {self.server.key_remedy}")
        if status == 404:
            hint = "" if "/v1" in self.url else f" Is its address {endpoint(self.url, '/v1')}?"
            return SettingsError(
                f"{self.url} has no model {self.options.model!r} or no chat completions ({message}). "
                f"Its models: curl {endpoint(self.url, '/models')}.{hint}"
            )
        return SettingsError(f"{self.url} refuses a request of {self.name}: {message}.{self._cure(message)}")

    def _cure(self, message: str) -> str:
        """Return the advice for a request that is refused for good: the setting that leaves out what is refused."""
        cures = dict(_CURES)
        for name in get_args(Omittable):
            cures[name] = f"omit = {json.dumps(sorted({*self.options.omit, name}))}"
        matches = [(at, cure) for name, cure in cures.items() if (at := re.search(rf"\b{name}\b", message))]
        if not matches:
            return ""
        cure = min(matches, key=lambda pair: pair[0].start())[1]
        return f" Set this for {self.name} in the profile: {cure}."

    def max_tokens(self, request: ChatRequest) -> int:
        """Return the most tokens of a reply, thoughts among them."""
        return request.max_tokens + self.options.thinking_tokens

    def body(self, request: ChatRequest) -> bytes:
        """Return the JSON that asks a server for a reply."""
        payload: dict[str, Any] = {
            "model": self.options.model,
            "messages": request.messages(),
            self.options.token_field: self.max_tokens(request),
            "temperature": request.temperature,
            "top_p": 1,
            "seed": request.sample,
            "stream": False,
            **self.options.sampling(request),
        }
        if self.server.flavour == "vllm":
            # The server would apply the model's generation_config.json otherwise.
            payload |= {"top_k": 0, "min_p": 0, "repetition_penalty": 1}
            if request.choices:
                payload["structured_outputs"] = {"choice": list(request.choices)}
        elif request.choices:
            fields = {CHOICE: {"type": "string", "enum": list(request.choices)}}
            shape = {"type": "object", "properties": fields, "required": [CHOICE], "additionalProperties": False}
            schema = {"name": "choice", "strict": True, "schema": shape}
            payload["response_format"] = {"type": "json_schema", "json_schema": schema}
        if self.options.effort:
            payload["reasoning_effort"] = self.options.effort
        if self.options.template_options:
            payload["chat_template_kwargs"] = dict(self.options.template_options)
        payload = {name: value for name, value in payload.items() if name not in self.options.omit}
        return json.dumps(payload | dict(self.options.extra), ensure_ascii=False).encode()


def _host(location: str) -> str:
    """Return the host and port that a redirect points to, without user, path and query."""
    try:
        return shown(urlsplit(location).netloc.rpartition("@")[2]) or "another path of this host"
    except ValueError:
        return "an address that is none"


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

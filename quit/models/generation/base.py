"""Chat requests, completions and generators: the common part of all ways to run a language model."""

from __future__ import annotations

import gc
import hashlib
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

from quit.models.loading import model_identity
from quit.models.prompting import PromptTemplate

CHOICE = "answer"  # the field of a constrained reply
FILTERED = "content_filter"  # finish reason of a reply that the vendor withheld
FAILED = f"{FILTERED}: failed"  # of none, where the server fails at the prompt
_TOKENS = ("prompt_tokens", "completion_tokens", "cached_tokens", "thought_tokens")
MAX_TOKENS = 10**9  # of one reply: more is no count


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One chat to send.

    ``fields`` fill the template's placeholders (only when it is sent: a shard has twenty thousand prompts of five
    kilobytes). ``choices``: the reply has to be one of these, where the server can constrain it. ``sample``
    numbers repetitions, each of which is asked for. ``group``: requests of one group share a prefix and go to one
    replica, in order. ``frequency_penalty``, ``presence_penalty``: as OpenAI defines them, -2 to 2. ``stop``: the
    reply ends before the first of these.
    """

    template: PromptTemplate
    fields: Mapping[str, str]
    max_tokens: int
    temperature: float = 0.0
    sample: int = 0
    choices: tuple[str, ...] = ()
    group: str = ""
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    stop: tuple[str, ...] = ()

    @property
    def sampling(self) -> dict[str, Any]:
        """The options that differ from plain sampling, by the servers' names; empty for most requests."""
        plain = {"frequency_penalty": 0.0, "presence_penalty": 0.0, "stop": ()}
        values = {name: getattr(self, name) for name in plain}
        return {
            name: list(value) if name == "stop" else value for name, value in values.items() if value != plain[name]
        }

    def messages(self) -> list[dict[str, str]]:
        """Return the chat."""
        return self.template.messages(self.fields)


@dataclass(frozen=True, slots=True)
class Completion:
    """A finished reply. ``finish_reason``: ``stop``, ``length`` or ``content_filter`` (withheld; the text is empty),
    the last with the vendor's word where that is another (``content_filter: SAFETY``).

    Token counts are the server's, 0 where it gives none.
    ``cached_tokens``: prompt tokens that came from its prefix cache when this was asked; ``thought_tokens``: those of
    its ``completion_tokens`` that were thoughts. Neither is kept by the generation cache. ``origin``: the server that
    gave it, its address and what it says of its model; empty for a model in this program. Raises :class:`ValueError`
    for what no table could hold: a text with lone surrogates, a count that is none.
    """

    text: str
    finish_reason: str
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    origin: str = ""
    thought_tokens: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise ValueError("its content is not a text")
        self.text.encode()  # a lone surrogate is a UnicodeEncodeError, which is a ValueError
        for name, count in self.tokens.items():
            if type(count) is not int or not 0 <= count <= MAX_TOKENS:  # true would be read back as 1
                raise ValueError(f"its {name} is not a number from 0 to {MAX_TOKENS:,}")

    @property
    def tokens(self) -> dict[str, int]:
        """All token counts, by name."""
        return {name: getattr(self, name) for name in _TOKENS}

    @property
    def is_empty(self) -> bool:
        """Whether there is no text and no reason for that; such a reply is not kept."""
        return not self.text.strip() and self.finish_reason != "length" and not self.finish_reason.startswith(FILTERED)

    @property
    def is_refused(self) -> bool:
        """Whether an error came in its place, which says that the prompt is refused."""
        return self.finish_reason.startswith(f"{FILTERED}: HTTP ") or self.is_failed

    @property
    def is_failed(self) -> bool:
        """Whether the server failed at the prompt, each time, and answered others: not for ever, so it is not kept."""
        return self.finish_reason.startswith(FAILED)


OnReply = Callable[[int, Completion], Future[None] | None]
"""Called with a request's position and its completion as soon as it is there, from any thread.

Where it returns a future, the reply is safe once that is done; a generator that waits for it before its next request
loses no more than its requests in flight when it is killed.
"""


class Generator(Protocol):
    """A language model that answers chats.

    ``identity``: model, revision and options; with the request it decides the reply. ``name``: for messages to people.
    """

    name: str
    identity: str

    def generate(self, requests: Sequence[ChatRequest], on_reply: OnReply) -> None:
        """Answer all requests, in their order as far as possible; returns when each was handed to ``on_reply``.

        Raises :class:`quit.errors.ServerError` when the model cannot be reached and
        :class:`quit.errors.SettingsError` when it refuses what it is asked; what was handed to ``on_reply`` before
        stays good.
        """

    def release(self) -> None:
        """Give back the memory of a model in this process; the next request loads it again."""


class Completing(Protocol):
    """The interface that LLM readers and judges ask: :class:`quit.models.generation.CachedGenerator`."""

    identity: str

    def complete(self, requests: Sequence[ChatRequest]) -> list[Completion]:
        """Return one completion per request, in order."""


@dataclass(frozen=True)
class ModelOptions:
    """The model and its options. ``template_options`` go to the chat template, ``extra`` to the server. ``kind``: how
    it is run, the beginning of its identity.

    ``token_field``, ``omit``, ``effort``, ``thinking``, ``thinking_tokens``: as in
    :class:`quit.settings.models.LanguageModel`.

    ``model`` is a name or a folder (of a server, written with a slash). The identity of a folder is its content
    (:mod:`quit.models.folders`), not its path: other weights at the same path are another model, and no table holds a
    path of this machine.
    """

    model: str
    revision: str = ""
    template_options: Mapping[str, Any] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)
    kind: str = ""
    token_field: str = "max_tokens"
    omit: tuple[str, ...] = ()
    effort: str | None = None
    thinking: str = "refuse"
    thinking_tokens: int = 0

    @property
    def template(self) -> dict[str, Any]:
        """The options of the chat template of a model in this process."""
        return {**self.template_options, **({"reasoning_effort": self.effort} if self.effort else {})}

    def sampling(self, request: ChatRequest) -> dict[str, Any]:
        """Return the request's :attr:`ChatRequest.sampling`, without stop strings for a model that may think.

        Its first thought with one would end the reply. Who asks cuts the answer there (:func:`before_stop`).
        """
        return {name: value for name, value in request.sampling.items() if name != "stop" or self.thinking == "refuse"}

    @cached_property
    def identity(self) -> str:
        """Kind, model, revision and a hash of the options that are not the default."""
        options: dict[str, Any] = {"template": dict(self.template_options), "extra": dict(self.extra)}
        for name in ("token_field", "omit", "effort", "thinking", "thinking_tokens"):
            if (value := getattr(self, name)) != getattr(ModelOptions, name):
                options[name] = value
        name = model_identity(self.model, self.revision, self.kind == "chat")
        if self.kind:
            name = f"{self.kind}/{name}"
        if any(options.values()):
            name += f"+{hashlib.sha256(canonical(options)).hexdigest()[:8]}"
        return name


def free_memory() -> None:
    """Release unused memory of this process, and of its GPU if there is one."""
    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()


def canonical(value: Any) -> bytes:
    """Return JSON with sorted keys, as UTF-8."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()


def cache_key(identity: str, request: ChatRequest) -> bytes:
    """Return the key of a reply, 32 bytes: a hash of everything that could change it.

    It covers the prompt's messages and ``sample``, so that every repetition is asked for.
    """
    payload = {
        "model": identity,
        "prompt": request.template.sha,
        "messages": request.messages(),
        "max_tokens": request.max_tokens,
        "temperature": request.temperature,
        "choices": request.choices,
        "sample": request.sample,
        **request.sampling,
    }
    return hashlib.sha256(canonical(payload)).digest()


def before_stop(text: str, stop: Sequence[str]) -> str:
    """Return a reply up to its first stop string. Some servers include it or ignore it."""
    places = [text.find(ending) for ending in stop if ending in text]
    return text[: min(places, default=len(text))]


def choice_of(text: str) -> str:
    """Return the choice in a reply that follows the JSON schema; the reply as it is where it does not."""
    with suppress(ValueError, KeyError, TypeError, RecursionError):
        return str(json.loads(text)[CHOICE])
    return text

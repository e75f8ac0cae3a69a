"""What a server of chat completions is asked, and what its answers mean; nothing is sent here."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, get_args
from urllib.parse import urlsplit

from quit.common.progress import note
from quit.errors import QuitError, SettingsError
from quit.models.generation import reply as replies
from quit.models.generation.base import CHOICE, FILTERED, ChatRequest, Completion, ModelOptions, choice_of
from quit.models.generation.limits import retry_after
from quit.models.generation.reply import OVERLOADED, PassingFault
from quit.models.generation.serving import endpoint, is_about_key
from quit.settings import ServerSettings
from quit.settings.models import Omittable
from quit.text.secrets import contains_secret, shown

_AGAIN = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529})  # HTTP codes of passing faults
_NOT_BEGUN = OVERLOADED | {409, 425}  # nobody is charged for these; behind a gateway's, the model may have replied
CHARACTERS_A_TOKEN = 128  # of a reply, at most: about the longest entry of common vocabularies, a run of spaces
_RETRY_AFTER_CAP = 300.0  # seconds of a Retry-After that are honoured
_CURES = {
    "max_tokens": 'token_field = "max_completion_tokens"',
    "max_completion_tokens": 'token_field = "max_tokens"',
    "reasoning_effort": "no effort",
    "response_format": "constrained = false",
    "chat_template_kwargs": "no template_options",
}
"""Field of a request that a server may refuse -> the setting that cures it."""
_LONG = " Give the model fewer documents, words or reply tokens (max_new_tokens), or serve a longer context."
_NAMES = 3  # model names in replies that are told


class RefusedRequest(SettingsError):
    """A server refuses a request for good: for its prompt, where it answers another one, or for its other fields."""


@dataclass(eq=False)
class Chat:
    """A model at a base URL such as ``http://127.0.0.1:8000/v1``.

    ``model_names``: those in the replies of all replicas so far. ``refusal``: why a prompt was refused the last time.
    """

    name: str
    url: str
    options: ModelOptions
    server: ServerSettings
    model_names: list[str]
    refusal: str = ""
    _said: set[str] = field(default_factory=set)

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
                f"a reply that is not a chat completion ({error}): {replies.error_text(content)}", of_prompt=True
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
            raise PassingFault(f"a reply that was not finished ({shown(word)})", of_prompt=True)
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
        self.refusal = f"{replies.error_text(content).rstrip('.')}.{_LONG if what == 'long' else ''}"
        return Completion("", replies.withheld(word))

    def fitted(self, completion: Completion, request: ChatRequest) -> Completion:
        """Return a completion as its request asks for it: the choice alone; of a server that goes on past
        ``max_tokens``, the first 128 characters per token, as a reply that was cut."""
        if completion.is_refused:
            size = sum(len(message["content"].encode()) for message in request.messages())
            room = f"({size:,} bytes, and {self.max_tokens(request):,} tokens for the reply), which counts as NO ANSWER"
            self.tell(completion.finish_reason, f"refuses a prompt of {request.group} {room}: {self.refusal}")
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
            is_free, of_prompt = status in _NOT_BEGUN, status not in OVERLOADED
            return PassingFault(message, wait, status in OVERLOADED, is_free=is_free, of_prompt=of_prompt)
        if is_about_key(status, content):
            return SettingsError(f"{self.url} refuses the API key of {self.name} ({message}). {self.server.key_remedy}")
        if status == 404:
            hint = "" if "/v1" in self.url else f" Is its address {endpoint(self.url, '/v1')}?"
            return SettingsError(
                f"{self.url} has no model {self.options.model!r} or no chat completions ({message}). "
                f"Its models: curl {endpoint(self.url, '/models')}.{hint}"
            )
        kind = SettingsError if (cure := self._cure(message)) else RefusedRequest
        return kind(f"{self.url} refuses a request of {self.name}: {message}.{cure}")

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

    def tell(self, kind: str, text: str) -> None:
        """Print the first text of a kind."""
        if kind not in self._said:
            self._said.add(kind)
            note(f"{self.name}: {self.url} {text}", loud=True)


def _host(location: str) -> str:
    """Return the host and port that a redirect points to, without user, path and query."""
    try:
        return shown(urlsplit(location).netloc.rpartition("@")[2]) or "another path of this host"
    except ValueError:
        return "an address that is none"

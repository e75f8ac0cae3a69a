"""What a server's reply says: its answer and its thoughts, what it counts, how it ended, what it refuses."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import compress
from operator import not_
from typing import Any

from quit.errors import QuitError, SettingsError
from quit.models.generation.base import FILTERED, MAX_TOKENS, Completion, ModelOptions
from quit.settings import ServerSettings
from quit.text import vendors
from quit.text.secrets import shown

_THOUGHTS = ("reasoning_content", "reasoning", "thinking", "thoughts", "reasoning_details", "thinking_blocks")
"""Fields of a message beside its content."""
_OF_THOUGHT = re.compile("think|thought|reason")  # the type of a part
_HALF = re.compile("[\ud800-\udfff]")  # of a pair: a character that a token limit cut
_TELLING = frozenset({"code", "type", "status", "reason", "message", "msg", "detail", "error", "blockReason"})
"""Fields of an error."""
OVERLOADED = frozenset({429, 503, 529})
"""HTTP codes that ask for patience, whatever their text names (``input_token_count``, "Too many tokens")."""
_QUOTED = 1 << 16  # bytes of a body that are looked at for a message
_WORD = 80  # characters of a vendor's word


@dataclass(eq=False)
class PassingFault(QuitError):
    """A fault that another attempt may overcome.

    ``after``: seconds that the server asks to wait; ``absent``: there is no connection to it; ``is_free``: nobody is
    charged for it (as where it is absent); ``of_prompt``: the prompt may be its cause.
    """

    message: str
    after: float | None = None
    overloaded: bool = False
    absent: bool = False
    is_free: bool = False
    of_prompt: bool = False

    def __post_init__(self) -> None:
        super().__init__(self.message)  # without secrets


def text_of(message: Mapping[str, Any]) -> tuple[Any, str]:
    """Return a message's text and the thoughts that are apart from it: in fields of their own, or in parts of it."""
    content = message.get("content") or ""
    thoughts = [message[name] for name in _THOUGHTS if message.get(name)]
    if isinstance(content, list):
        of_thought = [bool(_OF_THOUGHT.search(str(part.get("type")))) for part in content]
        thoughts += compress(content, of_thought)
        content = "".join(str(part.get("text") or "") for part in compress(content, map(not_, of_thought)))
    if isinstance(content, str):
        content = _HALF.sub("\ufffd", content)
    return content, str(thoughts) if thoughts else ""


def read(content: bytes | bytearray) -> Any:
    """Return a reply's body; a broken character is U+FFFD. Raises ``ValueError`` or ``RecursionError`` for no JSON."""
    return json.loads(content.decode(json.detect_encoding(content), "replace"))


def counts_of(content: bytes | bytearray) -> Completion:
    """Return a completion with the counts of a reply's body, all 0 where it has none."""
    with suppress(ValueError, AttributeError, RecursionError):
        return Completion("", "stop", **tokens_of(read(content).get("usage")))
    return Completion("", "stop")


def tokens_of(usage: Any) -> dict[str, Any]:
    """Return the counts of a completion: those of its reply are the most that the fields together say.

    Thoughts may be among the reply's tokens, beside them, or in the total alone. A count that is none is 0.
    """

    def count(*names: str) -> int:
        return next(filter(None, (_count(usage, *name.split(".")) for name in names)), 0)

    prompt, reply = count("prompt_tokens", "input_tokens"), count("completion_tokens", "output_tokens")
    thoughts = count(
        "completion_tokens_details.reasoning_tokens", "output_tokens_details.reasoning_tokens", "reasoning_tokens"
    )
    beside = thoughts if thoughts > reply else 0
    rest = count("total_tokens") - prompt if prompt else 0
    return {
        "prompt_tokens": prompt,
        "completion_tokens": min(max(reply + beside, rest), MAX_TOKENS),
        "cached_tokens": min(count("prompt_tokens_details.cached_tokens"), prompt),
        "thought_tokens": thoughts,
    }


def _count(value: Any, *names: str) -> int:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return int(value) if is_number and 0 <= value <= MAX_TOKENS else 0


class UnaskedThoughts(SettingsError):
    """A reply with thoughts of a model that is not to think."""


def answer_of(name: str, options: ModelOptions, text: str, finish_reason: str, thoughts: str = "") -> str:
    """Return a reply without its thoughts; empty where it was cut inside them, as where nothing marks them: the chat
    template may have opened them.

    ``finish_reason``: of the reply; ``thoughts``: those that a server sends or counts apart from the text. Raises
    :class:`UnaskedThoughts` for thoughts where ``options.thinking`` is ``refuse``.
    """
    answer, marked = vendors.parted(text)
    if options.thinking == "drop":
        ran_out = finish_reason == "length" and options.thinking_tokens and not thoughts and not marked
        return "" if ran_out else answer.lstrip()  # vLLM leaves the line ends after the thoughts
    if marked or thoughts:
        raise UnaskedThoughts(
            f"{name} sent its thinking with its answer, or counts it as a part of that. Switch it off in the profile "
            '(effort = "none"; template_options = { enable_thinking = false } for Qwen 3; or as the model\'s card '
            'says), or let it think: thinking = "drop" with thinking_tokens = 2000, for example.'
        )
    return answer


def meaning_of(server: ServerSettings, kind: str, word: str, what: str) -> str:
    """Return what a server's word means (:func:`quit.text.vendors.meaning`), where its settings do not say.

    Raises :class:`SettingsError`, which begins with ``what``, for a word that is not known.
    """
    if meaning := server.words.get(word) or vendors.meaning(kind, word):
        return meaning
    choices = '"running" }, or "ended"' if kind == "batch" else '"stop" }, or "length" (cut), "withheld", "again"'
    raise SettingsError(
        f"{what} with the word {shown(word)!r}, which is not known. Say what it means at the server {server.name} of "
        f"the profile: words = {{ {json.dumps(shown(word))} = {choices}."
    )


def withheld(word: str) -> str:
    """Return the finish reason of a reply that a vendor withholds, with the vendor's word for it."""
    word = word.removeprefix(f"{FILTERED}:").strip()
    return FILTERED if word.casefold() == FILTERED else f"{FILTERED}: {shown(word, _WORD)}"


def status_of(status: int, content: bytes | bytearray) -> int:
    """Return the HTTP code of a reply: that of its error where one comes as a success, as gateways send it."""
    if status != 200 or b'"choices"' in content:
        return status
    reply = _parsed(content)
    error = reply.get("error") if isinstance(reply, dict) else None
    code = str(error.get("code")) if isinstance(error, dict) else ""
    return int(code) if re.fullmatch("[345][0-9][0-9]", code) else status


def refusal_of(status: int, content: bytes | bytearray) -> tuple[str, str]:
    """Return what an error says (:func:`quit.text.vendors.refusal`) and its word for that; empty where it is another.

    Its codes come before its message, for they are shorter.
    """
    for text in sorted(_told(_parsed(content)), key=len):
        what = vendors.refusal(text)
        if what and (what == "loading" or status not in OVERLOADED):
            return what, f"HTTP {status} {text}"
    return "", ""


def error_text(content: bytes | bytearray) -> str:
    """Return the text of a body for a message: the error's text if it is JSON."""
    reply = _parsed(content)
    error = reply.get("error", reply) if isinstance(reply, dict) else reply
    text = error.get("message") if isinstance(error, dict) else error if isinstance(error, str) else None
    return shown(str(text or content[:_QUOTED].decode("utf-8", "replace")))


def _parsed(content: bytes | bytearray) -> Any:
    text = content[:_QUOTED].decode("utf-8", "replace")
    with suppress(ValueError, RecursionError):
        return json.loads(text)
    return text


def _told(value: Any, name: str = "error") -> Iterator[str]:
    """Yield the texts of an error's fields, a block reason with its name."""
    if isinstance(value, str) and name in _TELLING:
        yield f"{name} {value}" if name == "blockReason" else value
    elif isinstance(value, dict | list):
        for inner, each in value.items() if isinstance(value, dict) else ((name, each) for each in value):
            yield from _told(each, inner)

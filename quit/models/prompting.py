"""Prompts as text files: turns under ``### system``, ``### user`` and ``### assistant``, with ``{placeholders}``.

A prompt's hash is part of every model identity and every cache key, so changing a comma in the file changes them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from quit.errors import SettingsError, did_you_mean

PROMPTS = Path(__file__).parent / "prompts"
CHARACTERS_A_TOKEN = 4.0
"""Where a model's tokenizer is not known: an estimate for English."""

_TURN = re.compile(r"^### (system|user|assistant)[ \t]*\n", re.MULTILINE)
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")

Message = dict[str, str]
"""A chat turn: ``{"role": ..., "content": ...}``."""


@dataclass(frozen=True)
class PromptTemplate:
    """A prompt file. ``turns``: (role, text) in order; ``sha``: first 12 hex digits of the file's SHA-256."""

    name: str
    sha: str
    turns: tuple[tuple[str, str], ...]

    @property
    def identity(self) -> str:
        """Name and hash, as in model identities."""
        return f"{self.name}@{self.sha}"

    @property
    def placeholders(self) -> frozenset[str]:
        """Names that :meth:`messages` needs."""
        return frozenset(name for _, text in self.turns for name in _PLACEHOLDER.findall(text))

    def messages(self, fields: Mapping[str, str]) -> list[Message]:
        """Return the chat with its placeholders filled in (once: braces in a value stay as they are).

        Raises ``KeyError`` for a missing field.
        """
        return [
            {"role": role, "content": _PLACEHOLDER.sub(lambda match: fields[match[1]], text)}
            for role, text in self.turns
        ]


def load_prompt(name: str, fields: frozenset[str] = frozenset()) -> PromptTemplate:
    """Return a prompt that comes with the program (``reader``) or the one in a file (``prompts/mine.txt``).

    Raises :class:`SettingsError` where there is no such prompt, it is no UTF-8, has no turns or text before them, or
    its placeholders are not ``fields``, where these are given.
    """
    path = Path(name) if name.endswith(".txt") else PROMPTS / f"{name}.txt"
    if not path.is_file():
        names = sorted(prompt.stem for prompt in PROMPTS.glob("*.txt"))
        raise SettingsError(f"There is no prompt {name!r}.{did_you_mean(name, names)}")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"The prompt {path} cannot be read ({error}). Save it as UTF-8.") from None
    template = _parse(path.stem, text)
    if not _TURN.match(text.lstrip()) or template.turns[-1][0] != "user":
        raise SettingsError(
            f"The prompt {path} needs turns (### system, ### user, ### assistant), the first on its first line, that "
            "end with the user's."
        )
    if fields and template.placeholders != fields:
        placeholders = ", ".join(f"{{{name}}}" for name in sorted(fields))
        raise SettingsError(f"The prompt {path} must have exactly the placeholders {placeholders}.")
    return template


@cache
def _parse(name: str, text: str) -> PromptTemplate:
    pieces = _TURN.split(text)
    turns = tuple((role, content.strip()) for role, content in zip(pieces[1::2], pieces[2::2], strict=True))
    return PromptTemplate(name, hashlib.sha256(text.encode()).hexdigest()[:12], turns)

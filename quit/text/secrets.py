"""Texts without secrets: what may be shown, logged or stored by Prefect.

The one place that takes secrets out. Every :class:`quit.errors.QuitError` passes its message through here as it is
made, and every log record (:func:`quit.common.logs.without_secrets_in_logs`). Truncate a foreign
text with :func:`shown`: it takes secrets out first, since a truncated key can no longer be recognised.
"""

from __future__ import annotations

import os
import re
from functools import cache

SECRET = re.compile(r"TOKEN|KEY|SECRET|PASSWORD|PASSWD|CREDENTIAL|HOOK|_AUTH", re.IGNORECASE)
"""Names of environment variables that sound like secrets."""
_sounds_secret = cache(SECRET.search)  # every error and log line asks it of every variable
_USER = re.compile(r"(?<=://)[^/\s\"]+@")
_SHORTEST = 6  # a shorter value would take ordinary words out of messages
_PIECE = 8  # characters of a key in a row that are taken out, for servers and libraries cut texts too
_SHOWN = 300  # characters of others' texts in a message
_SENT: dict[str, str] = {}


def register_secret(value: str, name: str) -> None:
    """Register a key: texts have ``(name)`` in its place from then on, and in place of pieces of 8 characters."""
    if len(value) >= _SHORTEST:
        _SENT[value] = name


def contains_secret(text: str) -> bool:
    """Whether a text contains a whole registered key, in one piece or with white space in it."""
    joined = "".join(text.split())
    return any(value in text or value in joined for value in _SENT)


def without_secrets(text: str) -> str:
    """Return a text without users and passwords in addresses, and with ``(NAME)`` in place of secrets.

    Those are the keys that are sent, and values of environment variables whose names sound like secrets.
    """
    values = {value: name for name, value in os.environ.items() if _sounds_secret(name) and len(value) >= _SHORTEST}
    for value in sorted(values, key=lambda value: (-len(value), value)):  # a longer one may hold a shorter one
        text = text.replace(value, f"({values[value]})")
    for value, name in list(_SENT.items()):
        text = _without_pieces(text, value, f"({name})")
    return _USER.sub("", text)


def shown(text: str, most: int = _SHOWN) -> str:
    """Return a text of others for a message: one printable line without secrets, then cut to ``most`` characters."""
    line = "".join(char if char.isprintable() else "?" for char in " ".join(without_secrets(text).split()))
    return line[:most] + ("..." if len(line) > most else "")


def _without_pieces(text: str, secret: str, mask: str) -> str:
    """Return a text with a mask for each run of a secret's characters, of ``_PIECE`` (or the whole secret) at least."""
    for start in range(max(1, len(secret) - _PIECE + 1)):
        before, *after = text.split(secret[start : start + _PIECE])
        rest = secret[start + _PIECE :]
        more = [len(os.path.commonprefix([part, rest])) for part in after]  # noqa: RUF071 (characters are meant)
        text = before + "".join(mask + part[size:] for part, size in zip(after, more, strict=True))
    return text

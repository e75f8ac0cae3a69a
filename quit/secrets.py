"""What may leave the machine in messages, notices and support bundles: texts without secrets."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence

SECRET = re.compile(r"TOKEN|KEY|SECRET|PASSWORD|PASSWD|CREDENTIAL|HOOK|_AUTH", re.IGNORECASE)
"""Names of environment variables that sound like secrets."""
_USER = re.compile(r"(?<=://)[^/\s\"'@]+@")
_SHORTEST = 6  # a shorter value would take ordinary words out of messages
_FORMS = re.compile(r"\b(?:hf|sk|ghp|glpat|xox[a-z])[-_][A-Za-z0-9_-]{12,}|(?i:bearer|token)\s+[A-Za-z0-9._-]{12,}")
_EMAIL = re.compile(r"[\w.+-]+@[\w-]+(\.[\w-]+)+")


def without_secrets(text: str, also: Sequence[str] = (), environment: Mapping[str, str] | None = None) -> str:
    """Return a text without users and passwords in addresses, and with ``(NAME)`` for values of variables that sound like secrets.

    ``also``: names of more variables. ``environment``: the process's own if not given.
    """
    held = os.environ if environment is None else environment
    values = {
        value: name for name, value in held.items() if (name in also or SECRET.search(name)) and len(value) >= _SHORTEST
    }
    for value in sorted(values, key=lambda value: (-len(value), value)):  # a longer one may hold a shorter one
        text = text.replace(value, f"({values[value]})")
    return _USER.sub("", text)


def anonymous(text: str, environment: Mapping[str, str] | None = None) -> str:
    """Return a text without secrets, without e-mail addresses and what has the form of a token; the home folder becomes ``~``."""
    held = os.environ if environment is None else environment
    text = _EMAIL.sub("[e-mail]", _FORMS.sub("[secret]", without_secrets(text, environment=held)))
    home = held.get("HOME", "")
    return text.replace(home, "~") if len(home) > 1 else text

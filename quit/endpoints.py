"""Which address a model is asked at, as logs, metrics and notices may show it: without user, password, query or token."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from urllib.parse import urlsplit

from quit.errors import SettingsError
from quit.settings import Settings

_USER = re.compile(r"(?<=://)[^/\s@]+@")
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|HOOK|_AUTH", re.IGNORECASE)
_SHORTEST = 6  # a shorter value would take ordinary words out of messages


def address(url: str) -> str:
    """Return a URL without user, password, query and fragment; nothing for what is no URL."""
    parts = urlsplit(url)
    if not parts.netloc:
        return ""
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}".rstrip("/")


def endpoints(settings: Settings) -> dict[str, str]:
    """Return reader or judge -> the addresses it is asked at, separated by commas; ``in process`` for what needs none."""
    found: dict[str, str] = {}
    for one in (*settings.readers, settings.judge):
        found[one.name] = "in process"
        if one.kind == "server" and one.server:
            try:
                found[one.name] = ",".join(address(url) for url in settings.server(one.server).urls())
            except SettingsError:
                found[one.name] = f"server {one.server}"
    return found


def endpoint_of(settings: Settings, stage: str, reader: str | None) -> str:
    """Return the address that a stage's shard is worked on with."""
    name = reader if reader is not None else settings.judge.name if stage == "judge" else None
    return endpoints(settings).get(name or "", "in process")


def without_secrets(text: str, also: Sequence[str] = ()) -> str:
    """Return a text without the values of environment variables that sound like secrets (or are named in ``also``), and without users
    in URLs."""
    for name, value in os.environ.items():
        if (name in also or _SECRET.search(name)) and len(value) >= _SHORTEST:
            text = text.replace(value, f"({name})")
    return _USER.sub("", text)

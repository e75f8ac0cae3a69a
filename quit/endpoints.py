"""Which address a model is asked at, as logs, metrics and notices may show it: without user, password, query or token."""

from __future__ import annotations

from urllib.parse import urlsplit

from quit.errors import SettingsError
from quit.settings import Settings


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


def endpoint_of(settings: Settings, run: str) -> str:
    """Return the address that a stage run (``read:NAME``, ``judge``) is worked on with."""
    stage, _, reader = run.partition(":")
    name = settings.judge.name if stage == "judge" else reader
    return endpoints(settings).get(name, "in process")

"""The address of a model as logs, metrics and notices show it: without user, password, query or token."""

from __future__ import annotations

from urllib.parse import urlsplit

from quit.errors import SettingsError
from quit.settings import Judge as JudgeSettings
from quit.settings import ReaderSettings, Settings


def address(url: str) -> str:
    """Return a URL without user, password, query and fragment; nothing for what is no URL."""
    parts = urlsplit(url)
    if not parts.netloc:
        return ""
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}".rstrip("/")


def endpoints(settings: Settings) -> dict[str, str]:
    """Return reader or judge -> its addresses, separated by commas; ``in process`` where it needs none."""
    addresses: dict[str, str] = {}
    models: list[ReaderSettings | JudgeSettings] = [*settings.readers, settings.judge]
    for model in models:
        addresses[model.name] = "in process"
        if model.kind == "server" and model.server:
            try:
                addresses[model.name] = ",".join(address(url) for url in settings.server(model.server).urls())
            except SettingsError:
                addresses[model.name] = f"server {model.server}"
    return addresses


def endpoint_of(settings: Settings, run: str) -> str:
    """Return the address that a stage run (``read:NAME``, ``judge``) is worked on with."""
    stage, _, reader = run.partition(":")
    name = settings.judge.name if stage == "judge" else reader
    return endpoints(settings).get(name, "in process")

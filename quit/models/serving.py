"""The servers a profile needs: the commands that start them, and whether they are up and serve what they should."""

from __future__ import annotations

import json
import shlex
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any
from urllib.parse import urlsplit

from quit.common.secrets import shown
from quit.errors import SettingsError
from quit.settings import Judge, ReaderSettings, ServerSettings, Settings

_MOST = 4 << 20  # bytes of a list of models
MAX_MODEL_LEN = 4096  # the few-shot prompt takes about 1,000 tokens, five hints a few hundred


class _Stay(urllib.request.HTTPRedirectHandler):
    """Follows no redirect, since it would receive the key; a redirect is an HTTP error."""

    def redirect_request(self, *_: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_Stay)


@dataclass(frozen=True)
class Serving:
    """A model on a server: who uses it, and the command that starts it (None where it is not ours to start)."""

    users: tuple[str, ...]
    model: str
    server: ServerSettings
    command: tuple[str, ...] | None


def servings(settings: Settings) -> list[Serving]:
    """Return every (model, server) of a profile, in order of first use."""
    users: dict[tuple[str, str], list[ReaderSettings | Judge]] = {}
    specifications: tuple[ReaderSettings | Judge, ...] = (*settings.readers, settings.judge)
    for spec in specifications:
        if spec.kind == "server":
            users.setdefault((spec.model or "", spec.server or ""), []).append(spec)
    listed = []
    for (model, name), specs in users.items():
        server = settings.server(name)
        command = _command(model, specs[0].revision, server)
        listed.append(Serving(tuple(spec.name for spec in specs), model, server, command))
    return listed


def _command(model: str, revision: str, server: ServerSettings) -> tuple[str, ...] | None:
    if server.flavour != "vllm":
        return None
    address = urlsplit(server.urls()[0])
    return (
        *("vllm", "serve", model, *(("--revision", revision) if revision else ()), "--served-model-name", model),
        *("--host", address.hostname or "127.0.0.1", "--port", str(address.port or 8000)),
        *("--max-model-len", str(MAX_MODEL_LEN), "--max-num-seqs", str(server.concurrency)),
        *("--enable-prefix-caching", "--enable-prompt-tokens-details"),
    )


def shell(command: tuple[str, ...]) -> str:
    """Return a command as it is typed."""
    return shlex.join(command)


def check(serving: Serving, timeout: float = 5.0) -> tuple[bool, str]:
    """Return whether every replica answers and lists the model, and what was found; never raises."""
    try:
        urls, key = serving.server.urls(), serving.server.key()
    except SettingsError as error:
        return False, str(error)
    slowest = 0.0
    for url in urls:
        request = urllib.request.Request(f"{url.rstrip('/')}/models")
        if key:
            request.add_header("Authorization", f"Bearer {key}")
        began = time.monotonic()
        try:
            with _OPENER.open(request, timeout=timeout) as response:
                served = [str(model["id"]) for model in json.loads(response.read(_MOST))["data"]]
        except urllib.error.HTTPError as error:
            return False, f"{url} answers HTTP {error.code}"
        except (OSError, HTTPException, ValueError, KeyError, TypeError, RecursionError) as error:
            return False, f"{url} does not answer ({shown(str(error))})"
        slowest = max(slowest, time.monotonic() - began)
        if serving.model not in served:
            return False, f"{url} serves {shown(', '.join(served[:5])) or 'nothing'}, not {serving.model}"
    return True, f"{', '.join(urls)} serves {serving.model} ({slowest * 1000:.0f} ms)"

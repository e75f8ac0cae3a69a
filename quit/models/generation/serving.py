"""The servers a profile needs: the commands that start them, and whether they are up and serve what they should."""

from __future__ import annotations

import json
import re
import time
import urllib.error
import urllib.request
from base64 import b64encode
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any
from urllib.parse import unquote, urlsplit

from quit.common.endpoints import address, proxy_of
from quit.common.rows import grouped
from quit.errors import SettingsError
from quit.models.loading import located
from quit.settings import JudgeSettings, ReaderSettings, ServerSettings, Settings
from quit.text.secrets import shown

CONNECT_SECONDS = 10.0
"""Longest wait for a connection."""
_MAX_BYTES = 4 << 20  # bytes of a list of models
_MAX_REFUSAL = 1 << 14  # bytes of a refusal
_CONTEXT = ("max_model_len", "context_length", "context_window", "max_context_length", "n_ctx")
"""Fields of a listed model: vLLM's, OpenRouter's, Groq's, LM Studio's, llama.cpp's."""
_WRONG_KEY = re.compile(rb"api[_ ]?key[_ ](is )?(in|not )valid|(invalid|incorrect|wrong|missing|no)[_ ]api[_ ]?key")
_OTHER_MATTER = re.compile(
    rb"scope|permission|polic|guideline|moderat|countr|region|billing|credit|balance|model|content|blocked|captcha"
)
MAX_MODEL_LEN = 4096  # the few-shot prompt takes about 1,000 tokens, five hints a few hundred


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirect, since it would receive the key; a redirect is an HTTP error."""

    def redirect_request(self, *_: Any) -> None:
        return None


@dataclass(frozen=True)
class Serving:
    """A model on a server: who uses it, and the command that starts each replica (none where it is not vLLM)."""

    users: tuple[str, ...]
    model: str
    server: ServerSettings
    revision: str = ""

    @property
    def commands(self) -> tuple[tuple[str, ...], ...]:
        """Raises :class:`SettingsError` for a server without an address."""
        return _commands(self.model, self.revision, self.server)


def servings(settings: Settings) -> list[Serving]:
    """Return every (model, server) of a profile, in order of first use."""
    specifications: tuple[ReaderSettings | JudgeSettings, ...] = (*settings.readers, settings.judge)
    users = grouped(((spec.model or "", spec.server or ""), spec) for spec in specifications if spec.kind == "server")
    return [
        Serving(tuple(spec.name for spec in specs), model, settings.server(name), specs[0].revision)
        for (model, name), specs in users.items()
    ]


def _commands(model: str, revision: str, server: ServerSettings) -> tuple[tuple[str, ...], ...]:
    if server.flavour != "vllm":
        return ()
    return tuple(
        (
            *("vllm", "serve", located(model)),
            *(("--revision", revision) if revision else ()),
            *("--served-model-name", model),
            *("--host", parts.hostname or "127.0.0.1", "--port", str(parts.port or 8000)),
            *("--max-model-len", str(MAX_MODEL_LEN), "--max-num-seqs", str(server.concurrency)),
            *("--enable-prefix-caching", "--enable-prompt-tokens-details"),
        )
        for parts in map(urlsplit, server.urls())
    )


def endpoint(url: str, path: str) -> str:
    """Return the address of a path below a base URL, which may have a query (``?api-version=...``)."""
    base, mark, query = url.partition("?")
    return f"{base.rstrip('/')}{path}{mark}{query}"


def model_names(url: str, key: str | None, timeout: float = CONNECT_SECONDS) -> dict[str, int]:
    """Return the names in a server's list of models with their context in tokens, 0 where it does not say.

    Raises what urllib and json raise, ``KeyError`` and ``TypeError``.

    Anthropic takes a bearer token for chats only (https://docs.anthropic.com/en/api/models-list). Google lists
    ``models/NAME``.
    """
    parts = urlsplit(endpoint(url, "/models"))
    user, _, host = parts.netloc.rpartition("@")
    request = urllib.request.Request(parts._replace(netloc=host).geturl())
    if user:  # urllib would take it for a part of the host's name
        request.add_header("Authorization", f"Basic {b64encode(unquote(user).encode()).decode()}")
    elif key and parts.hostname == "api.anthropic.com":
        request.headers.update({"X-api-key": key, "Anthropic-version": "2023-06-01"})
    elif key:
        request.add_header("Authorization", f"Bearer {key}")
    proxy = proxy_of(url)
    proxies = urllib.request.ProxyHandler({request.type: proxy} if proxy else {})
    with urllib.request.build_opener(_NoRedirects, proxies).open(request, timeout=timeout) as response:
        models = json.loads(response.read(_MAX_BYTES))["data"]
    facts = {str(model["id"]).removeprefix("models/"): {**(model.get("meta") or {}), **model} for model in models}
    return {name: next((fields[key] for key in _CONTEXT if fields.get(key)), 0) for name, fields in facts.items()}


def refuses_key(error: urllib.error.HTTPError) -> bool:
    """Return whether a server's refusal to list its models says that the API key is wrong."""
    try:
        return is_about_key(error.code, error.read(_MAX_REFUSAL))
    except (OSError, HTTPException):
        return True


def is_about_key(status: int, content: bytes | bytearray) -> bool:
    """Return whether a refusal is for the API key.

    The same codes are those of a key that may ask but not list (OpenAI names the permission), of a policy, a country,
    an empty account or a model for others. Google refuses a wrong key with 400 and ``API_KEY_INVALID``.
    """
    text = content[:_MAX_REFUSAL].lower()
    if status in (400, 401, 403) and _WRONG_KEY.search(text):
        return True
    return status in (401, 403) and not _OTHER_MATTER.search(text)


def check(serving: Serving, timeout: float = 5.0) -> tuple[bool, str, str]:
    """Return whether every replica answers and lists the model, what was found, and what to do; never raises."""
    try:
        urls, key = serving.server.urls(), serving.server.key()
    except SettingsError as error:
        return False, str(error), ""
    slowest = 0.0
    for url in urls:
        began, place = time.monotonic(), address(url)
        try:
            names = model_names(url, key, timeout)
        except urllib.error.HTTPError as error:
            if refuses_key(error):
                return False, f"{place} refuses the API key (HTTP {error.code})", serving.server.key_remedy
            if error.code in (401, 403):
                return True, f"{place} answers; this key may not list its models (HTTP {error.code})", ""
            return False, f"{place} answers HTTP {error.code}", serving.server.remedy_for()
        except (OSError, HTTPException, ValueError, KeyError, TypeError, RecursionError) as error:
            return False, f"{place} does not answer ({shown(str(error))})", serving.server.remedy_for(str(error))
        slowest = max(slowest, time.monotonic() - began)
        if serving.model.removeprefix("models/") not in names:
            other = f"{place} serves {shown(', '.join([*names][:5])) or 'nothing'}, not {serving.model}"
            return False, other, "Name a model that it serves in the profile, or let it serve this one."
    return True, f"{', '.join(map(address, urls))} serves {serving.model} ({slowest * 1000:.0f} ms)", ""

"""The servers a profile needs: which GPU and how much of it each gets, the commands that start them, and whether they
are up and serve what they should."""

from __future__ import annotations

import json
import math
import re
import shlex
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any
from urllib.parse import urlsplit

from quit.common.rows import grouped
from quit.errors import SettingsError
from quit.models.loading import located
from quit.settings import JudgeSettings, ReaderSettings, ServerSettings, Settings
from quit.text.secrets import shown

CONNECT_SECONDS = 10.0
"""Longest wait for a connection."""
_MAX_BYTES = 4 << 20  # bytes of a list of models
_MAX_REFUSAL = 1 << 14  # bytes of a refusal
MAX_MODEL_LEN = 4096  # the few-shot prompt takes about 1,000 tokens, five hints a few hundred
USABLE = 0.92
"""Share of a GPU's memory that servers may take together."""
ALONE = 0.9
"""Share of a GPU's memory for a server that has it to itself: vLLM's own default."""
_BYTES, _BESIDE = 2.1, 3.0  # bytes a parameter (bfloat16 and buffers); GB for KV cache, activations and CUDA
_SIZE = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)b(?![a-z0-9])", re.IGNORECASE)
_UNKNOWN = 8.0  # billions of parameters, where the name does not say


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirect, since it would receive the key; a redirect is an HTTP error."""

    def redirect_request(self, *_: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirects)


@dataclass(frozen=True)
class Serving:
    """A model on a server: who uses it, and the command that starts it (None where it is not ours to start)."""

    users: tuple[str, ...]
    model: str
    server: ServerSettings
    command: tuple[str, ...] | None
    judges: bool = False

    @property
    def gigabytes(self) -> float:
        """GPU memory it needs, in GB: estimated from the size in the model's name (8B: eight billion parameters)."""
        sizes = _SIZE.findall(self.model.replace("-", " ").replace("_", " "))
        return _BYTES * (float(sizes[-1]) if sizes else _UNKNOWN) + _BESIDE

    def command_on(self, share: float) -> tuple[str, ...]:
        """Return the command with its share of the GPU's memory."""
        return (*(self.command or ()), "--gpu-memory-utilization", f"{share:g}")


@dataclass(frozen=True)
class GpuPlan:
    """Which GPU each server gets (by the position of its serving) and which share of its memory; servers that are not
    ours have none. ``together``: all may be up at once; else one reader at a time, and the judge."""

    gpus: int
    together: bool
    devices: dict[int, int]
    shares: dict[int, float]

    def sentence(self, servings: Sequence[Serving]) -> str:
        """Return the plan in one line."""
        each = [
            f"{'/'.join(servings[row].users)} on {device} ({self.shares[row]:.2f})"
            for row, device in sorted(self.devices.items(), key=lambda item: (item[1], item[0]))
        ]
        return (
            f"{self.gpus} GPU{'s' * (self.gpus > 1)}, {'together' if self.together else 'in turns'}: {', '.join(each)}"
        )


def plan(servings: Sequence[Serving], gpus: int, gigabytes: float) -> GpuPlan:
    """Return how to spread servers over ``gpus`` GPUs of ``gigabytes`` GB each: largest first, to the emptiest GPU.

    Where they do not fit, they take turns on the first GPU, each with most of it; a judge stays beside them.
    """
    rows = sorted(
        (row for row, serving in enumerate(servings) if serving.command), key=lambda row: -servings[row].gigabytes
    )
    used_gigabytes, devices = [0.0] * gpus, {}
    for row in rows:
        devices[row] = used_gigabytes.index(min(used_gigabytes))
        used_gigabytes[devices[row]] += servings[row].gigabytes
    if max(used_gigabytes) <= USABLE * gigabytes:
        has_own_gpu = {row: list(devices.values()).count(device) == 1 for row, device in devices.items()}
        shares = {row: _share(servings[row].gigabytes / used_gigabytes[devices[row]]) for row in rows}
        return GpuPlan(gpus, True, devices, {row: ALONE if has_own_gpu[row] else shares[row] for row in rows})
    judge = sum(servings[row].gigabytes for row in rows if servings[row].judges)
    largest = max((servings[row].gigabytes for row in rows if not servings[row].judges), default=0.0)
    sizes = {row: servings[row].gigabytes if servings[row].judges else largest for row in rows}
    turns = {row: _share(size / (judge + largest)) if judge else ALONE for row, size in sizes.items()}
    return GpuPlan(gpus, False, dict.fromkeys(rows, 0), turns)


def _share(part: float) -> float:
    return math.floor(USABLE * part * 100) / 100


def servings(settings: Settings) -> list[Serving]:
    """Return every (model, server) of a profile, in order of first use."""
    specifications: tuple[ReaderSettings | JudgeSettings, ...] = (*settings.readers, settings.judge)
    users = grouped(((spec.model or "", spec.server or ""), spec) for spec in specifications if spec.kind == "server")
    rows = []
    for (model, name), specs in users.items():
        server = settings.server(name)
        command = _command(model, specs[0].revision, server)
        judges = any(isinstance(spec, JudgeSettings) for spec in specs)
        rows.append(Serving(tuple(spec.name for spec in specs), model, server, command, judges))
    return rows


def _command(model: str, revision: str, server: ServerSettings) -> tuple[str, ...] | None:
    if server.flavour != "vllm":
        return None
    address = urlsplit(server.urls()[0])
    return (
        *("vllm", "serve", located(model)),
        *(("--revision", revision) if revision else ()),
        *("--served-model-name", model),
        *("--host", address.hostname or "127.0.0.1", "--port", str(address.port or 8000)),
        *("--max-model-len", str(MAX_MODEL_LEN), "--max-num-seqs", str(server.concurrency)),
        *("--enable-prefix-caching", "--enable-prompt-tokens-details"),
    )


def shell(command: tuple[str, ...], device: int) -> str:
    """Return a command as it is typed."""
    return f"CUDA_VISIBLE_DEVICES={device} {shlex.join(command)}"


def model_names(url: str, key: str | None, timeout: float = CONNECT_SECONDS) -> list[str]:
    """Return the names in a server's list of models. Raises what urllib and json raise, ``KeyError`` and ``TypeError``.

    Anthropic takes a bearer token for chats only (https://docs.anthropic.com/en/api/models-list). Google lists
    ``models/NAME``.
    """
    request = urllib.request.Request(f"{url.rstrip('/')}/models")
    if key and urlsplit(url).hostname == "api.anthropic.com":
        request.headers.update({"X-api-key": key, "Anthropic-version": "2023-06-01"})
    elif key:
        request.add_header("Authorization", f"Bearer {key}")
    with _OPENER.open(request, timeout=timeout) as response:
        return [str(model["id"]).removeprefix("models/") for model in json.loads(response.read(_MAX_BYTES))["data"]]


def refuses_key(error: urllib.error.HTTPError) -> bool:
    """Return whether a server's refusal to list its models says that the API key is wrong.

    OpenAI refuses a restricted key that may ask but not list with the same codes, and names the permission. Google
    refuses a wrong key with 400 and ``API_KEY_INVALID``.
    """
    try:
        text = error.read(_MAX_REFUSAL).lower()
        return b"api_key_invalid" in text or (error.code in (401, 403) and not re.search(rb"scope|permission", text))
    except (OSError, HTTPException):
        return True


def check(serving: Serving, timeout: float = 5.0) -> tuple[bool, str, str]:
    """Return whether every replica answers and lists the model, what was found, and what to do; never raises."""
    try:
        urls, key = serving.server.urls(), serving.server.key()
    except SettingsError as error:
        return False, str(error), ""
    slowest = 0.0
    for url in urls:
        began = time.monotonic()
        try:
            names = model_names(url, key, timeout)
        except urllib.error.HTTPError as error:
            if refuses_key(error):
                return False, f"{url} refuses the API key (HTTP {error.code})", serving.server.key_remedy
            if error.code in (401, 403):
                return True, f"{url} answers; this key may not list its models (HTTP {error.code})", ""
            return False, f"{url} answers HTTP {error.code}", serving.server.remedy
        except (OSError, HTTPException, ValueError, KeyError, TypeError, RecursionError) as error:
            return False, f"{url} does not answer ({shown(str(error))})", serving.server.remedy
        slowest = max(slowest, time.monotonic() - began)
        if serving.model.removeprefix("models/") not in names:
            other = f"{url} serves {shown(', '.join(names[:5])) or 'nothing'}, not {serving.model}"
            return False, other, "Name a model that it serves in the profile, or let it serve this one."
    return True, f"{', '.join(urls)} serves {serving.model} ({slowest * 1000:.0f} ms)", ""

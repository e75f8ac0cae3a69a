"""Builds whose readers and judge are models on real servers: a profile, and a build that is killed on its way."""

import json
import os
import signal
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from quit.models.generation import GenerationCache
from tests.running import start_quit, until

AT_S = {"kind": "server", "server": "s", "model": "m"}
"""A model of the server of :func:`served`."""
TWO_HINTS: dict[str, Any] = {"passages": {"hints": 2}, "split": {"method": "share"}}


def served(
    url: str, *labelers: str, reader: Mapping[str, Any] = {}, server: Mapping[str, Any] = {}, **sections: Any
) -> dict[str, Any]:
    """Return a profile's sections: labelers at one server ``s``, and others; ``reader``, ``server``: more of theirs."""
    readers = [{"name": name, "role": "labeler", **AT_S, **reader} for name in labelers]
    return {"readers": readers, "servers": [{"name": "s", "base_urls": [url], **server}], **sections}


def write_profile(path: Path, sections: Mapping[str, Any]) -> Path:
    """Write the sections of a profile."""
    lines = [f"{name} = {json.dumps(value, separators=(', ', ' = '))}\n" for name, value in sections.items()]
    path.write_text("".join(lines), encoding="utf-8")
    return path


def start_build(workspace: Path, profile: Path, source: str, cache: Path, *more: str) -> subprocess.Popen[bytes]:
    """Start ``quit build`` in a process group of its own; ``cache``: its generation cache's folder; log in
    ``W.log``."""
    log, variables = workspace.with_name("W.log"), {"QUIT_CACHE": str(cache)}
    return start_quit("build", "-w", workspace, "-p", profile, "-s", source, *more, log=log, **variables)


def kill_when(process: subprocess.Popen[bytes], is_time: Callable[[], bool], seconds: float = 900) -> bool:
    """Kill a build (SIGKILL, all its processes) when it is time; returns False where it ended before."""
    until(lambda: process.poll() is not None or is_time(), seconds=seconds, every=0.1)
    in_time = process.poll() is None
    if in_time:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return in_time


def kept_replies(cache: Path) -> int:
    """Return the number of replies in a cache folder."""
    if not (cache / "generations.sqlite").is_file():
        return 0
    with GenerationCache(cache / "generations.sqlite") as opened:
        return sum(row["replies"] for row in opened.statistics())

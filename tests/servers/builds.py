"""Builds whose readers and judge are models on real servers: a profile, and a build that is killed on its way."""

import os
import signal
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.paths import starter_lines
from tests.running import start_quit, until


def three_questions() -> list[str]:
    """Return the lines of the questions whose builds a taught model reads and judges: every other of the starter's
    first."""
    return starter_lines()[1:7:2]


def write_profile(
    path: Path,
    readers: Mapping[str, tuple[str, str]],
    judge: tuple[str, str],
    *,
    concurrency: int = 8,
    more: str = "",
    template_options: str = "{ enable_thinking = false }",
) -> Path:
    """Write a profile whose labelers are ``readers``: name -> (model, base URL); ``judge`` likewise. ``more``: more
    TOML."""
    blocks = ['description = "Tiny models on real servers."', '[split]\nmethod = "share"', more]
    blocks.append(
        f'[judge]\nname = "gpt-eval"\nkind = "server"\nserver = "judge"\nmodel = "{judge[0]}"\nconstrained = true'
    )
    for name, (model, _) in readers.items():
        blocks.append(
            f'[[readers]]\nname = "{name}"\nrole = "labeler"\nkind = "server"\nserver = "{name}"\nmodel = "{model}"\n'
            f"template_options = {template_options}"
        )
    for name, (_, url) in {**readers, "judge": judge}.items():
        blocks.append(
            f'[[servers]]\nname = "{name}"\nbase_urls = ["{url}"]\nconcurrency = {concurrency}\npatience_seconds = 20'
        )
    path.write_text("\n\n".join(blocks) + "\n", encoding="utf-8")
    return path


def one_reader(url: str, *, reader: str = "", server: str = "") -> str:
    """Return a profile with two hints per question and one labeler at a server; ``reader``, ``server``: more TOML."""
    return (
        '[split]\nmethod = "share"\n[convergence]\nhints = 2\n[run]\nshard_questions = 1\n'
        '[[readers]]\nname = "r"\nrole = "labeler"\nkind = "server"\nserver = "s"\nmodel = "m"\n'
        f'{reader}\n[[servers]]\nname = "s"\nbase_urls = ["{url}"]\n{server}\n'
    )


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

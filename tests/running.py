"""Run the command line in this process (:func:`call_quit`), or it or another program in one of its own
(:func:`run_process`, :func:`start_quit`)."""

import io
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from contextvars import copy_context
from pathlib import Path
from typing import Any, NamedTuple, TextIO
from unittest.mock import patch

from tests.paths import ROOT

PLAIN = {"NO_COLOR": "1", "COLUMNS": "200"}
QUIT = (sys.executable, "-m", "quit")
WAITING = re.compile(r"(?m)^(?:[\w -]+: |   )\d+:\d\d(?::\d\d)?(?:[;:] .*)?\n")
"""Lines for whoever waits, which only a slow machine prints."""


class Result(NamedTuple):
    """How a command ended: its exit code, and what it wrote."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        """Return what a command with ``--json`` printed."""
        return json.loads(self.out)


def _checked(arguments: tuple[object, ...], result: Result, code: int | None) -> Result:
    assert code in (None, result.code), f"{arguments} ended with {result.code}\n{result.out[-2000:]}\n{result.err}"
    return result._replace(err=WAITING.sub("", result.err))


def call_quit(*arguments: object, code: int | None = 0, stderr: TextIO | None = None, **variables: str) -> Result:
    """Run the command line in this process: seconds faster than one of its own, for all that needs none.

    ``arguments``: written as texts. ``code``: what it has to end with, or None. ``stderr``: where to write instead of
    keeping it. ``variables``: of the environment, while it runs.
    """
    from quit.cli import main

    out, err = io.StringIO(), io.StringIO()
    ended: int | str | None = 0
    with patch.dict(os.environ, {**PLAIN, **variables}), redirect_stdout(out), redirect_stderr(stderr or err):
        try:
            copy_context().run(main, list(map(str, arguments)))
        except SystemExit as exit:
            ended = exit.code or 0
    assert isinstance(ended, int)
    return _checked(arguments, Result(ended, out.getvalue(), err.getvalue()), code)


def run_process(
    *command: object,
    code: int | None = 0,
    cwd: Path = ROOT,
    env: dict[str, str] | None = None,
    stdin: str | None = None,
    **variables: str,
) -> Result:
    """Run a program, such as ``QUIT``, to its end.

    ``code``: what it has to end with, or None. ``env``: its environment instead of this one's, with ``variables``.
    ``stdin``: a text for it to read.
    """
    environment = {**(os.environ if env is None else env), **PLAIN, **variables}
    words, how = list(map(str, command)), {"env": environment, "cwd": cwd, "input": stdin}
    ended = subprocess.run(words, capture_output=True, text=True, timeout=900, **how)
    return _checked(command, Result(ended.returncode, ended.stdout, ended.stderr), code)


def start_quit(*arguments: object, log: Path, **variables: str) -> subprocess.Popen[bytes]:
    """Start the command line in a process group of its own; ``log``: a file for its stderr."""
    environment, command = {**os.environ, **PLAIN, "COLUMNS": "300", **variables}, [*QUIT, *map(str, arguments)]
    with log.open("wb") as errors:
        how: dict[str, Any] = {"env": environment, "cwd": ROOT, "start_new_session": True}
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors, **how)


_PAUSED = """
import importlib, sys, time
module = importlib.import_module(sys.argv[1])
def pause(*_, **__):
    open(sys.argv[3], "w").close()
    time.sleep(600)
setattr(module, sys.argv[2], pause)
from quit.cli import main
main(sys.argv[4:])
"""


def paused(module: str, function: str, marker: Path, *arguments: object) -> list[str]:
    """Return a program's words that run a command of ours, which stays at the call of a function; ``marker`` is there
    when it does."""
    return [sys.executable, "-c", _PAUSED, module, function, str(marker), *map(str, arguments)]


@contextmanager
def killed_at(module: str, function: str, folder: Path, *arguments: object) -> Iterator[None]:
    """A command of ours that stays at the call of a function, and is killed (SIGKILL) at the end; ``folder``: for a
    marker."""
    marker = folder / "running"
    process = subprocess.Popen(paused(module, function, marker, *arguments), cwd=ROOT)
    try:
        until(marker.exists, process)
        yield
    finally:
        process.kill()
        process.wait()


def until(
    ready: Callable[[], Any], process: subprocess.Popen[Any] | None = None, seconds: float = 600, every: float = 0.02
) -> Any:
    """Wait for an event, and return what it is; fails where the process ends before it, or it does not come.

    ``every``: seconds between looks; more where a look is a request, for the server works for it.
    """
    deadline = time.monotonic() + seconds
    while not (event := ready()):
        assert process is None or process.poll() is None, "the process ended before it was time"
        assert time.monotonic() < deadline, f"it did not come in {seconds:g} s"
        time.sleep(every)
    return event


def together(*calls: Callable[[], object]) -> None:
    """Call all functions at once, one thread each, and wait for them."""
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

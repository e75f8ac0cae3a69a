"""Start the command line as a subprocess, for tests of kills, signals, races and workers."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PYTHONPATH = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
"""What a process needs to find this checkout first, wherever it starts."""


def started(arguments: Sequence[str], errors: Path, **variables: str) -> subprocess.Popen[bytes]:
    """Start ``quit`` in a new process group. stderr goes to the file ``errors``."""
    environment = {**os.environ, "COLUMNS": "300", "NO_COLOR": "1", **variables}
    command, null = [sys.executable, "-m", "quit.cli", *arguments], subprocess.DEVNULL
    with errors.open("wb") as log:
        return subprocess.Popen(command, stdout=null, stderr=log, env=environment, cwd=ROOT, start_new_session=True)


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


def paused(module: str, function: str, marker: Path, *arguments: str) -> list[str]:
    """Return the arguments with which Python runs a command that stays at the call of a function; ``marker`` is there
    when it does."""
    return ["-c", _PAUSED, module, function, str(marker), *arguments]


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

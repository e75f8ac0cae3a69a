"""Processes that end with the one that started them, whatever ends it: servers and pip.

A process that is killed by SIGKILL cannot clean up, but its pipes close. So this file runs as a guard (8 MB) between us
and each child: it holds the reading end of a pipe whose writing end is ours, and ends the child when the pipe closes.
Standard library only: it is run by path, without the packages of either side.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

ORPHAN_SECONDS = 10.0
"""Seconds that a child has to end after SIGTERM, once its parent is gone: a database is closed, a file is finished."""


class SupervisedProcess(subprocess.Popen[bytes]):
    """``subprocess.Popen`` of a process that does not outlive this one. Signals reach it; its exit code is ours (128 +
    N for signal N).

    It runs in a new session, so the terminal sends Ctrl-C to us only, and we end it. ``grace``: seconds between SIGTERM
    and SIGKILL when we are gone. A command that cannot be started exits with 127 and says why on stderr.
    """

    def __init__(self, args: Sequence[str], *, grace: float = ORPHAN_SECONDS, **options: Any) -> None:
        reading, self._ours = os.pipe()
        guard = [sys.executable, "-I", "-S", __file__, str(reading), str(grace)]
        try:
            super().__init__([*guard, *args], pass_fds=(reading,), start_new_session=True, **options)
        except BaseException:
            os.close(self._ours)
            raise
        finally:
            os.close(reading)

    def ended(self, seconds: float) -> int | None:
        """Return the exit code, None of a child that still runs after ``seconds``."""
        with suppress(subprocess.TimeoutExpired):
            return self.wait(seconds)
        return None

    def kill(self) -> None:
        """Kill the child and all that it has started in its session."""
        if self.poll() is None:
            os.killpg(self.pid, signal.SIGKILL)


def _guard(pipe: int, grace: float, command: list[str]) -> int:
    """Run a command until it ends by itself or ``pipe`` closes; returns its exit code."""
    child: subprocess.Popen[bytes] | None = None
    signals: list[int] = []

    def pass_on(number: int, _: object) -> None:
        signals.append(number)
        if child is not None:
            child.send_signal(number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, pass_on)
    try:
        child = subprocess.Popen(command)
    except OSError as error:
        print(f"{command[0]} cannot be started: {error.strerror}", file=sys.stderr)
        return 127
    for early in signals:  # before there was a child
        child.send_signal(early)
    orphaned = threading.Event()
    threading.Thread(target=_end_with_parent, args=(pipe, grace, orphaned), daemon=True).start()
    code = child.wait()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.killpg(0, signal.SIGKILL if orphaned.is_set() else signal.SIGTERM)  # what the child has left behind
    return code if code >= 0 else 128 - code


def _end_with_parent(pipe: int, grace: float, orphaned: threading.Event) -> None:
    while os.read(pipe, 1):
        pass
    orphaned.set()
    os.killpg(0, signal.SIGTERM)
    time.sleep(grace)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    raise SystemExit(_guard(int(sys.argv[1]), float(sys.argv[2]), sys.argv[3:]))

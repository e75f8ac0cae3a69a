"""Ctrl-C, SIGTERM, a closed terminal: one line that says how to resume, then an end within seconds, whatever runs.

``quit.cli.main`` takes the signals, this module ends the process, :mod:`quit.common.children` what it has started.

All writes are atomic, so a command can be ended at any time. It gets ``STOP_SECONDS`` seconds to end by itself (a
server is informed, a temporary file is removed), then the process ends. A second signal ends it at once.
"""

from __future__ import annotations

import atexit
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

LINE = "quit: stopped. What is done stays done; run the same command again to resume."
STOP_SECONDS = 3.0
"""Seconds that a command has to end by itself, before shards at work are left."""

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_codes: list[int] = []
_first: list[Callable[[], None]] = []
_stopped_by: list[int] = []


def on_stop(call: Callable[[], None]) -> None:
    """Have ``call`` called before the line is printed: a progress bar ends."""
    _first.append(call)


def exit_code() -> int:
    """Return the exit code of a command that was stopped: 128 and the signal's number, as a shell has it."""
    return 128 + (_stopped_by[0] if _stopped_by else signal.SIGINT)


def end_with(code: int) -> None:
    """Have the process end with this exit code as soon as all that was registered for its end is done.

    Python would first free every object that imports made: a second with torch and Prefect.
    """
    _codes.append(code)


@atexit.register  # before what later imports register, so it is called after that
def _end_without_freeing() -> None:
    if _codes:
        logging.shutdown()
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(_codes[-1])


@contextmanager
def handling_interrupts(quiet_after: bool = True) -> Iterator[None]:
    """Take the signals in this block; ``quiet_after``: nothing more goes to stderr after the line (else tracebacks of
    what was cut off do).

    A signal that is ignored stays ignored: in the background of a shell, Ctrl-C is meant for others; ``nohup`` asks for
    SIGHUP.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(number: int, _: object) -> None:
        if _stopped_by:
            _end()
        _stopped_by.append(number)
        threading.Thread(target=_end_later, name="stopping", daemon=True).start()
        for call in _first:
            with suppress(Exception):
                call()
        with suppress(OSError, ValueError):
            sys.stderr.write(f"{LINE}\n")
            sys.stderr.flush()
            if quiet_after:
                os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        raise KeyboardInterrupt

    before = {number: signal.getsignal(number) for number in _SIGNALS}
    signals = [number for number in _SIGNALS if before[number] is not signal.SIG_IGN]
    for number in signals:
        signal.signal(number, handle)
    try:
        yield
    finally:
        if _stopped_by:
            _end()  # nothing waits for threads that are still at work
        for number in signals:
            signal.signal(number, before[number])


def _end_later() -> None:
    time.sleep(STOP_SECONDS)
    _end()


def _end() -> None:
    """End the process now; what it has started ends with it (:mod:`quit.common.children`)."""
    with suppress(Exception):
        sys.stdout.flush()
    os._exit(exit_code())

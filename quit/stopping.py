"""Ctrl-C: one line that says how to go on, then an end within seconds, whatever is running.

What is done stays done, since everything that is written appears whole or not at all; so stopping need not be gentle. A command gets
``GRACE`` seconds to end by itself (a server is told, a temporary file is removed), then the process ends. A second Ctrl-C ends it at once.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

LINE = "quit: stopped. What is done stays done; run the same command again to go on."
EXIT_CODE = 130
GRACE = 3.0
"""Seconds that a command has to end by itself. Prefect alone would try for minutes to reach a server that got the same Ctrl-C."""

_first: list[Callable[[], None]] = []
_last: list[Callable[[], None]] = []
_stopped = threading.Event()


def on_stop(first: Callable[[], None] | None = None, last: Callable[[], None] | None = None) -> None:
    """Have ``first`` called before the line is printed (a progress bar ends), ``last`` before the process ends by force."""
    _first.extend([first] if first else [])
    _last.extend([last] if last else [])


def stopped() -> bool:
    """Return whether Ctrl-C was pressed."""
    return _stopped.is_set()


@contextmanager
def heeding_interrupts(quiet_after: bool = True) -> Iterator[None]:
    """Take Ctrl-C in this block; ``quiet_after``: nothing more goes to stderr after the line (else tracebacks of what was cut off do)."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before is signal.SIG_IGN:
        yield  # started in the background by a shell: Ctrl-C is meant for others
        return

    def handle(*_: object) -> None:
        if _stopped.is_set():
            end()
        _stopped.set()
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

    signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        if stopped():
            end()  # nothing waits for threads that are still at work
        signal.signal(signal.SIGINT, before)


def _end_later() -> None:
    time.sleep(GRACE)
    end()


def end() -> None:
    """End the process now, after what ``on_stop`` named as last."""
    for call in _last:
        with suppress(Exception):
            call()
    with suppress(Exception):
        sys.stdout.flush()
    os._exit(EXIT_CODE)

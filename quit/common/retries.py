"""Another try after a pause, each twice as long as the one before."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Value = TypeVar("Value")


def with_retries(
    work: Callable[[], Value],
    retries: int,
    seconds: float,
    helps: Callable[[Exception], bool],
    say: Callable[[str], None] = lambda text: None,
) -> Value:
    """Return what ``work`` returns, after at most ``retries`` more tries where an error is one that another try
    ``helps``; else raise it. ``seconds``: of the first pause."""
    for attempt in range(retries):
        try:
            return work()
        except Exception as error:
            if not helps(error):
                raise
            pause = seconds * 2**attempt
            say(f"{error} Trying again in {pause:g} s ({attempt + 1} of {retries}).")
            time.sleep(pause)
    return work()

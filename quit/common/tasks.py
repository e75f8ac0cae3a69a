"""How the named steps of a job are carried out: called as they are, or by a flow as tasks of its run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar, TypeVarTuple

_T = TypeVar("_T")
_Ts = TypeVarTuple("_Ts")


class Step(Protocol):
    """Carries out a step of this name and returns what its function returns."""

    def __call__(self, name: str, function: Callable[[*_Ts], _T], /, *arguments: *_Ts) -> _T: ...


def directly(_name: str, function: Callable[[*_Ts], _T], /, *arguments: *_Ts) -> _T:
    """Call the step's function."""
    return function(*arguments)

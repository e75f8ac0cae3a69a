"""How the steps of a job are carried out: one by one as they are, by a flow as tasks of its run, or all before a wait
ends them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar, TypeVarTuple

from quit.errors import Waiting

_T = TypeVar("_T")
_Ts = TypeVarTuple("_Ts")


class Step(Protocol):
    """Carries out a step of this name and returns what its function returns."""

    def __call__(self, name: str, function: Callable[[*_Ts], _T], /, *arguments: *_Ts) -> _T: ...


def directly(_name: str, function: Callable[[*_Ts], _T], /, *arguments: *_Ts) -> _T:
    """Call the step's function."""
    return function(*arguments)


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

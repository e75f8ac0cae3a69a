"""Which valid answers stand in a passage, found without writing any passage out."""

from __future__ import annotations

from collections.abc import Sequence


def stands_in_a_passage(answer: str, hints: Sequence[str]) -> tuple[int, ...] | None:
    """Return the positions of the hints that hold an answer, in reading order, or None.

    A passage is an ordered selection of different hints, joined by one space. An answer lies inside a hint, or begins
    with the end of one, runs through any number of whole others and ends with the beginning of another. Case does not
    count.
    """
    wanted, folded = answer.casefold(), [hint.casefold() for hint in hints]
    for position, hint in enumerate(folded):
        if wanted in hint:
            return (position,)
    spaces = [place for place, letter in enumerate(wanted) if letter == " "]
    for position, hint in enumerate(folded):
        for space in spaces:
            if hint.endswith(wanted[:space]):
                found = _goes_on(wanted[space + 1 :], folded, (position,))
                if found:
                    return found
    return None


def _goes_on(rest: str, hints: Sequence[str], used: tuple[int, ...]) -> tuple[int, ...] | None:
    for position, hint in enumerate(hints):
        if position in used:
            continue
        if hint.startswith(rest):
            return (*used, position)
        if rest.startswith(hint + " "):
            found = _goes_on(rest[len(hint) + 1 :], hints, (*used, position))
            if found:
                return found
    return None

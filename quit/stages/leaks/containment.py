"""Valid answers in passages, as whole words or as letters, found without building the passages."""

from __future__ import annotations

from collections.abc import Sequence

from quit.settings import Leakage
from quit.stages.leaks.rules import holds
from quit.text.answers import answer_key
from quit.text.tokens import STOP_WORDS, word_spans


def is_word_of(answer: str, word: str) -> bool:
    """Whether a word of a hint is the answer, as answers are compared everywhere (case does not count)."""
    return answer_key(word.removesuffix("'s").removesuffix("’s")) == answer_key(answer)


def contained_in(answer: str, hints: Sequence[str], gold: bool, settings: Leakage) -> tuple[int, ...] | None:
    """Return the positions of the hints that hold an answer by the leakage filter's own rule, or None.

    Models and other lexical rules are not used. ``bem``: a content word is the answer. ``full``: the
    answer, in any spelling, is in a hint; of a gold answer (``gold``), with ``leakage.contained``, its letters anywhere
    in a passage are enough.
    """
    if settings.method == "full" and settings.contained and gold and (rows := hints_of_occurrence(answer, hints)):
        return rows
    for position, hint in enumerate(hints):
        if settings.method == "bem":
            contains = any(is_word_of(answer, word) for word in content_words(hint))
        else:
            contains = holds(hint, answer)
        if contains:
            return (position,)
    return None


def content_words(hint: str) -> list[str]:
    """Return the distinct words of a hint that are not stop words, in order. In capitals a stop word is a name: US."""
    words = dict.fromkeys(hint[slice(*offsets)] for offsets in word_spans(hint))
    return [word for word in words if word.casefold() not in STOP_WORDS or (word.isupper() and len(word) > 1)]


def hints_of_occurrence(answer: str, hints: Sequence[str]) -> tuple[int, ...] | None:
    """Return the positions of the hints that hold an answer, in reading order, or None.

    A passage is an ordered selection of different hints, joined by one space. An answer lies inside a hint, or begins
    with the end of one, runs through any number of whole others and ends with the beginning of another. Case does not
    count. A blank answer is in none.
    """
    if not answer.strip():
        return None
    target, folded = answer.casefold(), [hint.casefold() for hint in hints]
    for position, hint in enumerate(folded):
        if target in hint:
            return (position,)
    spaces = [index for index, letter in enumerate(target) if letter == " "]
    for position, hint in enumerate(folded):
        for space in spaces:
            if hint.endswith(target[:space]):
                positions = _continuation(target[space + 1 :], folded, (position,))
                if positions:
                    return positions
    return None


def _continuation(rest: str, hints: Sequence[str], path: tuple[int, ...]) -> tuple[int, ...] | None:
    for position, hint in enumerate(hints):
        if position in path:
            continue
        if hint.startswith(rest):
            return (*path, position)
        if rest.startswith(hint + " "):
            positions = _continuation(rest[len(hint) + 1 :], hints, (*path, position))
            if positions:
                return positions
    return None

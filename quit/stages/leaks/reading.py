"""Texts as the leakage rules read them: as words with their place, their case and their plain form."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from quit.text.answers import POWER
from quit.text.normalize import strip_accents
from quit.text.tokens import stem, word_spans

_LISTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
TITLES, AMBIGUOUS, GIVEN_NAMES = (frozenset(_LISTS[name].split()) for name in ("titles", "ambiguous", "given_names"))
"""Lists of ``reading.toml``."""
FUNCTION_WORDS = frozenset("a an the of and for in on at by to from with about de la le".split())
"""Words that a name may lack or have more of."""


class Word(NamedTuple):
    """A word of a text; ``start`` and ``end`` are offsets in characters."""

    text: str
    plain: str
    start: int
    end: int

    @property
    def capital(self) -> bool:
        return self.text[:1].isupper()


@lru_cache(maxsize=1024)  # more objects alive would cost Python's garbage collection more than they spare
def read(text: str) -> tuple[Word, ...]:
    """Return the words of a text in order."""
    return tuple(Word(text[start:end], plain(text[start:end]), start, end) for start, end in word_spans(text))


@lru_cache(maxsize=65536)
def plain(word: str) -> str:
    """Return a word in lower case, without accents and possessive; powers are none of its digits."""
    return strip_accents(POWER.sub(r"^\g<0>", word)).casefold().replace("’", "'").removesuffix("'s")


@lru_cache(maxsize=1024)
def answer_words(answer: str) -> tuple[Word, ...]:
    """Return an answer's words without articles, unless it is one."""
    return tuple(word for word in read(answer) if word.plain not in ("a", "an", "the")) or read(answer)


@lru_cache(maxsize=1024)
def stems(text: str) -> frozenset[str]:
    """Return the stems of a text's words."""
    return frozenset(stem(word.plain) for word in read(text))


def runs(hint: tuple[Word, ...], target: list[str], keys: list[str]) -> Iterator[tuple[Word, Word]]:
    """Yield the first and last word of each run of a hint whose keys are the wanted ones."""
    if target[0] in keys:
        for start in range(len(hint) - len(target) + 1):
            if keys[start : start + len(target)] == target:
                yield hint[start], hint[start + len(target) - 1]

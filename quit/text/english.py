"""Whether a text is English, by its script and its stop words."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

from quit.text.tokens import STOP_WORDS, words

_ALSO_FOREIGN = frozenset("a i s t am an as at do has he in me no of on or so us was were will is".split())
"""English stop words that are frequent in other languages too (German *was*, Dutch *is*, Spanish *me*)."""
_ENGLISH = STOP_WORDS - _ALSO_FOREIGN
_FEWEST = 3
"""Words from which on the language of a text is judged by them."""


@lru_cache(maxsize=10_000)
def not_english(text: str) -> bool:
    """Return whether a text is in another script, or has three words or more and none that is English only."""
    spoken = [word.casefold() for word in words(text)]
    return foreign_script(text) or (len(spoken) >= _FEWEST and _ENGLISH.isdisjoint(spoken))


def foreign_script(text: str) -> bool:
    """Return whether most letters, and more than one, are not Latin ones."""
    letters = [] if text.isascii() else [char for char in text if char.isalpha()]
    foreign = sum(not unicodedata.name(char, "").startswith("LATIN") for char in letters)
    return foreign > 1 and 2 * foreign > len(letters)

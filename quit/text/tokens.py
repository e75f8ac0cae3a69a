"""Words of a text, their stems, and those that say little."""

from __future__ import annotations

import re
import unicodedata
from functools import cache, lru_cache
from threading import Lock
from typing import Any

_ONE_AT_A_TIME = Lock()  # the stemmer keeps the word it works on; shards are threads
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
STOP_WORDS = frozenset(
    """a about above after again against all also am an and any are as at be because been before being below between
    both but by can could did do does doing down during each either else ever few for from further had has have
    having he her here hers herself him himself his how i if in into is it its itself just like made make many may
    me might more most much must my myself no nor not now of off often on once one only or other our ours ourselves
    out over own s same she should so some such t than that the their theirs them themselves then there these they
    this those through to too under until up upon us very was we were what when where which while who whom whose why
    will with within without would you your yours yourself yourselves""".split()
)


def words(text: str) -> list[str]:
    """Return the words of ``text`` in order, with their case, without punctuation (``don't`` is one word)."""
    return _WORD.findall(unicodedata.normalize("NFKC", text))


def word_spans(text: str) -> list[tuple[int, int]]:
    """Return the (start, end) character offsets of the words of ``text`` (NFC); offsets are into ``text`` itself."""
    return [match.span() for match in _WORD.finditer(text)]


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """Return the Snowball stem of a lower-case English word."""
    with _ONE_AT_A_TIME:
        return _stemmer().stemWord(word)


@cache
def _stemmer() -> Any:
    from snowballstemmer import stemmer  # those of all languages: it takes a while

    return stemmer("english")

"""SQuAD's form of an answer, for its metrics; the form of a question; letters and words.

Whether two texts are the same answer is for :func:`quit.text.answers.answer_key` to say.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache, lru_cache
from threading import Lock
from typing import Any

_ONE_AT_A_TIME = Lock()  # the stemmer keeps the word it works on; shards are threads
ARTICLES = re.compile(r"\b(a|an|the)\b")
_LETTERS = str.maketrans(
    {letter: plain for letter, plain in zip("łđðøħŧıŁĐÐØĦŦ", "lddohtiLDDOHT", strict=True)}
    | {"ß": "ss", "þ": "th", "æ": "ae", "œ": "oe", "ẞ": "SS", "Þ": "Th", "Æ": "Ae", "Œ": "Oe"}
)
"""Letters that no form of Unicode takes apart."""
_SIGNS = (
    (re.compile(r"(?<=[\w+])\+(?!\w)"), " plus "),
    (re.compile(r"(?<=\w)[#♯](?!\w)"), " sharp "),
    (re.compile(r"(?<=\d)\s*\+\s*(?=\d)"), " plus "),
    (re.compile(r"(?<=\d)\s+[-−–]\s+(?=\d)|(?<!\w)[-−–](?=\d)"), " minus "),
    (re.compile(r"(?<=\d)\s*[*×]\s*(?=\d)"), " times "),
    (re.compile(r"(?<=\d)/(?=\d)"), " slash "),
    (re.compile(r"(?<=\d)\s*%"), " percent "),
    (re.compile(r"(?<=\d)\s*<\s*(?=\d)"), " less than "),
    (re.compile(r"(?<=\d)\s*>\s*(?=\d)"), " greater than "),
)
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


class _Punctuation(dict[int, str]):
    """A table for ``str.translate`` that puts a text in place of punctuation, filled as characters turn up."""

    def __init__(self, replacement: str) -> None:
        super().__init__()
        self._replacement = replacement

    def __missing__(self, code: int) -> str:
        self[code] = self._replacement if is_punctuation(chr(code)) else chr(code)
        return self[code]


_WITHOUT_PUNCTUATION, _SPACED = _Punctuation(""), _Punctuation(" ")


@lru_cache(maxsize=65536)
def squad_normalised(text: str) -> str:
    """Return the form in which EM and F1 compare two answers, SQuAD's, with Unicode's compatibility forms folded.

    NFKC, case folded, punctuation deleted (``U.S.A.`` -> ``usa``), English articles removed, white space collapsed.
    Where that leaves nothing (the answer is an article or a symbol, such as blood type ``A`` or the operator ``%``) the
    case-folded text itself is returned, so that only a blank answer normalises to the empty string. A normalised answer
    normalises to itself.
    """
    folded = fold(text)
    without_punctuation = fold(folded.translate(_WITHOUT_PUNCTUATION))
    return " ".join(ARTICLES.sub(" ", without_punctuation).split()) or " ".join(folded.split())


def fold(text: str) -> str:
    """Return NFKC, case folded.

    Callers apply it twice. Removing punctuation, or folding a letter (the Turkish ``\u0130``), can create a sequence of
    accents that NFKC changes again.
    """
    return unicodedata.normalize("NFKC", text).casefold()


def is_punctuation(char: str) -> bool:
    """Return whether a character is punctuation to Unicode or to SQuAD."""
    # ASCII's $ + < = > ^ ` | ~ are symbols to Unicode and punctuation to SQuAD.
    return unicodedata.category(char)[0] == "P" or char in "$+<=>^`|~"


def spaced(text: str) -> str:
    """Return ``text`` with a space for each mark of punctuation."""
    return text.translate(_SPACED)


def normalize_question(text: str) -> str:
    """Return the form in which two questions, or two hints, are compared: folded words, with the signs that make
    another word of one (``C++``, ``F#``, ``-40``, ``50%``) or stand between numbers (``7 + 3``, ``1/2``) as words."""
    folded = fold(text)
    for sign, word in _SIGNS:
        folded = sign.sub(word, folded)
    return " ".join(fold(spaced(folded)).split())


def strip_accents(text: str) -> str:
    """Return ``text`` without accents, strokes and ligatures (``Édouard`` -> ``Edouard``, ``Łódź`` -> ``Lodz``)."""
    if text.isascii():
        return text
    decomposed = unicodedata.normalize("NFKD", text.translate(_LETTERS))
    return unicodedata.normalize("NFC", "".join(char for char in decomposed if not unicodedata.combining(char)))


def words(text: str) -> list[str]:
    """Return the words of ``text`` in order, with their case, without punctuation (``don't`` is one word)."""
    return _WORD.findall(unicodedata.normalize("NFKC", text))


def word_spans(text: str) -> list[tuple[int, int]]:
    """Return the (start, end) character offsets of the words of ``text``; offsets are into ``text`` itself."""
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

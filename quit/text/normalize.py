"""SQuAD's form of an answer, for its metrics; the form of a question; letters.

Whether two texts are the same answer is for :func:`quit.text.answers.answer_key` to say.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

ARTICLES = re.compile(r"\b(a|an|the)\b")
_LETTERS = str.maketrans(
    dict(zip("łđðøħŧıŁĐÐØĦŦ", "lddohtiLDDOHT", strict=True))
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
    """Return NFKC, case folded. What takes punctuation out of a folded text folds it again: that, or folding a letter
    (the Turkish ``\u0130``), can create a sequence of accents that NFKC changes again."""
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

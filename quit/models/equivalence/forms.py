"""Texts as the embedded equivalence reads them: answers cleaned and cut, and the forms of words that are compared.

The forms are finer than :func:`quit.text.normalize.squad_normalised`'s (numbers as digits, plurals folded, some
abbreviations spelt one way, ``1910–1939`` two numbers): they are evidence for a classifier, not a definition of
equality.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from quit.text.dates import MONTHS
from quit.text.normalize import ARTICLES, fold, spaced, strip_accents
from quit.text.numbers import ORDINALS, TENS, UNITS, numbers_in
from quit.text.tokens import STOP_WORDS

VALUES = {**UNITS, **TENS, **{word: value for word, value in ORDINALS.items() if value <= 12}}
_PHRASES = (
    (" united states of america ", " usa "),
    (" united states ", " usa "),
    (" u s a ", " usa "),
    (" u s ", " usa "),
    (" united kingdom ", " britain "),
    (" great britain ", " britain "),
    (" new york city ", " new york "),
)
"""Looked for in order, in normalised text with a space at either end."""
_ALIASES = {
    "us": "usa", "america": "usa", "uk": "britain", "st": "saint", "mt": "mount", "dr": "doctor", "mr": "mister",
    "jr": "junior", "vs": "versus",
}  # fmt: skip

# Marks that a web assistant leaves in its answers: "in19741." is "in 1974" with a footnote.
_GLUED = re.compile(r"\b(by|in|of|the|from|at|as|to|and|on|with|is|was|for|called|an)(?=[A-Z0-9])")
_YEAR_NOTE = re.compile(r"(?<!\d)((?:1[0-9]|20)\d\d)[1-9](?!\d)")
_WORD_NOTE = re.compile(r"(?<=[a-z)]{2})\d{1,2}(?=[\s.,;:]|$)")
_SENTENCE = 8
"""From this many words on, a candidate is taken for running text and cleaned of such marks."""
_HEAD, _WINDOW = 10, 14
"""Of a longer candidate these many words are read: its beginning, and the stretch most like the reference."""


def clean(answer: str) -> str:
    """Return an answer with single spaces and readable characters (`DÃ¡in` is `Dáin`) and, in running text, without
    footnote numbers and glued words."""
    if not answer.isascii():
        import ftfy

        answer = ftfy.fix_encoding(answer)
    text = " ".join(answer.split())
    if text.count(" ") + 1 < _SENTENCE:
        return text
    return _WORD_NOTE.sub("", _YEAR_NOTE.sub(r"\1", _GLUED.sub(r"\1 ", text)))


def focus(reference: str, candidate: str) -> str:
    """Return a candidate of at most 24 words unchanged, else its first words and the stretch most like the reference
    (the first such one), with an ellipsis where words are left out."""
    tokens = candidate.split()
    if len(tokens) <= _HEAD + _WINDOW:
        return candidate
    gold_words = set(folded(reference))
    gold_words = gold_words - STOP_WORDS or gold_words
    hits = [any(part in gold_words for part in folded(token)) for token in tokens]
    best = max(range(_HEAD, len(tokens) - _WINDOW + 1), key=lambda at: (sum(hits[at : at + _WINDOW]), -at))
    if best == _HEAD or not any(hits[best : best + _WINDOW]):
        return " ".join(tokens[: _HEAD + _WINDOW])
    # The window starts a few words before its first hit, so that a negation or a subject is read with it.
    first = best + hits[best : best + _WINDOW].index(True)
    best = min(max(_HEAD, first - 8), len(tokens) - _WINDOW)
    return " ".join([*tokens[:_HEAD], "...", *tokens[best : best + _WINDOW]])


@lru_cache(maxsize=50_000)
def folded(text: str) -> tuple[str, ...]:
    """Return the words of ``text``: normalised, without accents, numbers below a hundred in digits, singular."""
    plain = " ".join(fold(text).split())
    flat = " ".join(ARTICLES.sub(" ", spaced(plain)).split()) or plain
    flat = strip_accents(flat).replace("’", "'")
    flat = re.sub(r"(\d)(?:st|nd|rd|th)\b", r"\1", flat)
    flat = f" {re.sub(r'(?<=[0-9]) (?=000(?![0-9]))', '', flat)} "
    for phrase, form in _PHRASES:
        flat = flat.replace(phrase, form)
    return tuple(_singular(str(VALUES.get(word, _ALIASES.get(word, word)))) for word in flat.split())


def _singular(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and word.endswith(("sses", "shes", "ches", "xes")):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


@lru_cache(maxsize=50_000)
def numbers(text: str) -> tuple[float, ...]:
    """Return the values of the numbers in ``text`` in reading order (``3.5 million`` is 3500000.0)."""
    flat = strip_accents(unicodedata.normalize("NFKC", text)).casefold()
    return tuple(value for value, _, _ in numbers_in(flat))


@lru_cache(maxsize=50_000)
def months(text: str) -> frozenset[int]:
    """Return the months named in ``text``, 1 to 12. ``may`` counts only with a capital and a number at its side."""
    numbers_of_months = {match.lastindex or 0 for match in MONTHS.finditer(text) if not match[5]}
    if re.search(r"\bMay,?\s+\d|\d(?:st|nd|rd|th)?\s+(?:of\s+)?May\b", text):
        numbers_of_months.add(5)
    return frozenset(numbers_of_months)


@lru_cache(maxsize=100_000)
def trigrams(text: str) -> frozenset[str]:
    """Return the letter trigrams of ``text`` with a space at either end."""
    padded = f" {text} "
    return frozenset(padded[index : index + 3] for index in range(len(padded) - 2))


def jaccard(first: frozenset[str], second: frozenset[str]) -> float:
    """Return what two sets share of all that is in them, in [0, 1]; two empty ones 0."""
    common = len(first & second)
    return common / max(1, len(first) + len(second) - common)


@lru_cache(maxsize=200_000)
def alike(first: str, second: str) -> float:
    """Return how alike two words are, in [0, 1]: equal 1, an initial 0.8, else by their shared letter trigrams."""
    if first == second:
        return 1.0
    if (len(first) == 1 and second.startswith(first)) or (len(second) == 1 and first.startswith(second)):
        return 0.8
    if min(len(first), len(second)) < 4:
        return 0.0
    near = jaccard(trigrams(first), trigrams(second))
    if near < 0.25:
        return 0.0
    # An ending more or less is inflection in a long word (*chiasm*, *chiasma*), another name in a short one (*Paul*,
    # *Paula*).
    may_be_inflection = min(len(first), len(second)) >= 6 and abs(len(first) - len(second)) <= 2
    return max(near, 0.85 if may_be_inflection and (first.startswith(second) or second.startswith(first)) else 0.0)

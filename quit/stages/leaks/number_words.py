"""Numbers in running English text, in digits or in words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

_UNITS = {
    word: value
    for value, word in enumerate(
        """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
        sixteen seventeen eighteen nineteen""".split()
    )
}
_TENS = {
    word: 10 * value
    for value, word in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split(), start=2)
}
_TIMES = {"hundred": 100, "dozen": 12, "score": 20}
_SCALES = {**_TIMES, "thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000, "trillion": 10**12}
_WORDS = {**_UNITS, **_TENS, "dozen": 12}
_ORDINALS = {
    "first": 1,
    "second": 2,
    "third": 3,
    "fifth": 5,
    "eighth": 8,
    "ninth": 9,
    "twelfth": 12,
    "twentieth": 20,
    "thirtieth": 30,
    "fortieth": 40,
    "fiftieth": 50,
    "sixtieth": 60,
    "seventieth": 70,
    "eightieth": 80,
    "ninetieth": 90,
    **{f"{word}th": _UNITS[word] for word in ("four", "six", "seven", "ten", "eleven", *list(_UNITS)[13:])},
}
_FIRST = frozenset({"a", *_WORDS, *_ORDINALS})
"""Words that a number in words may begin with."""
_ROMAN_CAPITALS = {
    tens + units: 10 * ten + unit
    for ten, tens in enumerate(("", "X", "XX", "XXX"))
    for unit, units in enumerate(("", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX"))
    if len(tens + units) > 1
}
MONTHS = re.compile(
    r"\b(?:(jan)(?:uary)?|(feb)(?:ruary)?|(mar)(?:ch)?|(apr)(?:il)?|(may)|(june?)|(july?)|(aug)(?:ust)?|(sept?)(?:ember)?|"
    r"(oct)(?:ober)?|(nov)(?:ember)?|(dec)(?:ember)?)\b\.?",
    re.IGNORECASE,
)
_SLASHED = re.compile(r"\b(\d{1,2})([/.-])(\d{1,2})(?:\2(\d{2,4}))?\b|\b(\d{4})-(\d\d)-(\d\d)\b")
_TOKEN = re.compile(r"\d[\d,]*(?:\.\d+)?|[A-Za-z]+")


@lru_cache(maxsize=1024)
def numbers_in(text: str) -> Sequence[tuple[float, int, int]]:
    """Return (value, start, end) of every number in ``text``, digits and words together (``2 million``, ``forty-two``).

    Ordinals count as their number (``is_ordinal_word`` tells them apart), Roman numerals from II in capitals too;
    fractions in words are left alone. Offsets are in characters.
    """
    numbers: list[tuple[float, int, int]] = []
    tokens = [(match.group(), *match.span()) for match in _TOKEN.finditer(text)]
    position = 0
    while position < len(tokens):
        number = _read_number(text, tokens, position)
        if number is None:
            position += 1
            continue
        value, next_position = number
        numbers.append((value, tokens[position][1], tokens[next_position - 1][2]))
        position = next_position
    return numbers


def _scale_after(tokens: list[tuple[str, int, int]], position: int) -> bool:
    return position + 1 < len(tokens) and tokens[position + 1][0].casefold() in _SCALES


def is_ordinal_word(text: str) -> bool:
    """Whether a number in words ends in an ordinal (``eighteenth``, ``twenty-first``)."""
    words = re.findall(r"[A-Za-z]+", text.casefold())
    return bool(words) and words[-1] in _ORDINALS


def _read_number(text: str, tokens: list[tuple[str, int, int]], start: int) -> tuple[float, int] | None:
    first = tokens[start][0]
    if not (first[0].isdigit() or first in _ROMAN_CAPITALS or first.casefold() in _FIRST):
        return None
    total, group, position, last = 0.0, None, start, None
    while position < len(tokens):
        token, begin, _ = tokens[position]
        word = token.casefold()
        if position > start and not re.fullmatch(r"[\s-]+", text[tokens[position - 1][2] : begin]):
            break
        if token[0].isdigit():
            if position > start:
                break
            group, last = float(token.replace(",", "")), "digits"
        elif word in _SCALES and group is not None:
            if word in _TIMES:
                group *= _TIMES[word]
            else:
                total, group = total + group * _SCALES[word], 0.0
            last = "scale"
        elif word in ("a", "one") and position == start and _scale_after(tokens, position):
            group, last = 1.0, "units"
        elif token in _ROMAN_CAPITALS and position == start:
            group, last = float(_ROMAN_CAPITALS[token]), "digits"
        elif word in _ORDINALS and (last in (None, "scale", "and") or (last == "tens" and _ORDINALS[word] < 10)):
            return total + (group or 0.0) + _ORDINALS[word], position + 1
        elif word in _WORDS:
            value = _WORDS[word]
            if position == start + 1 and 10 <= (group or 0) <= 20 <= value:  # nineteen forty-five
                group, last, position = 100 * (group or 0) + value, "tens", position + 1
                continue
            fits = last is None or last == "scale" or last == "and" or (last == "tens" and value < 10)
            if not fits:
                break
            group, last = (group or 0.0) + value, "tens" if word in _TENS else "units"
        elif (
            word == "and"
            and last == "scale"
            and position + 1 < len(tokens)
            and tokens[position + 1][0].casefold() in _WORDS
        ):
            last = "and"
        else:
            break
        position += 1
    if group is None:
        return None
    return total + group, position


@lru_cache(maxsize=1024)
def dates_in(text: str) -> Sequence[tuple[int, int, int | None, int, int]]:
    """Return (month, day, year or None, start, end) of every date that names a day; 9/11 may be either of two days."""
    dates: list[tuple[int, int, int | None, int, int]] = []
    days = [(int(value), start, end) for value, start, end in numbers_in(text) if 1 <= value < 32]
    for match in MONTHS.finditer(text):
        month = match.lastindex or 0
        for day, start, end in days:
            before = re.fullmatch(r"(?:st|nd|rd|th)?(?:\s+of)?\s+", text[end : match.start()])
            after = start >= match.end() and re.fullmatch(r"\s*(?:the\s+)?", text[match.end() : start])
            if before or after:
                begin, stop = min(start, match.start()), max(end, match.end())
                year_match = re.match(r"(?:st|nd|rd|th)?,?\s+(\d{4})\b", text[stop:])
                dates.append((month, day, int(year_match[1]) if year_match else None, begin, stop))
    for match in _SLASHED.finditer(text):
        first, sign, second, year_text, *iso = match.groups()
        if iso[0]:
            dates.append((int(iso[1]), int(iso[2]), int(iso[0]), *match.span()))
        elif year_text or sign == "/":
            year = int(year_text) if year_text and len(year_text) == 4 else None
            dates += [(int(a), int(b), year, *match.span()) for a, b in ((first, second), (second, first))]
    return dates

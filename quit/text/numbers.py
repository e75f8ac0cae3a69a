"""Numbers in running English text, in digits or in words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

UNITS = {
    word: value
    for value, word in enumerate(
        """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
        sixteen seventeen eighteen nineteen""".split()
    )
}
TENS = {
    word: 10 * value
    for value, word in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split(), start=2)
}
_TIMES = {"hundred": 100, "dozen": 12, "score": 20}
SCALES = {**_TIMES, "thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000, "trillion": 10**12}
SCALES |= {"lakh": 100_000, "lakhs": 100_000, "crore": 10_000_000, "crores": 10_000_000}
_SHORT = {"k": 1_000, "K": 1_000, "M": 1_000_000, "mn": 1_000_000, "bn": 1_000_000_000, "tn": 10**12}
"""Scales right behind digits."""
_SHORT_OF_MONEY = {**_SHORT, "m": 1_000_000, "b": 1_000_000_000, "B": 1_000_000_000, "T": 10**12}
_WORDS = {**UNITS, **TENS, "dozen": 12}
_IRREGULAR = (
    "first 1 second 2 third 3 fifth 5 eighth 8 ninth 9 twelfth 12 twentieth 20 thirtieth 30 fortieth 40 fiftieth 50 "
    "sixtieth 60 seventieth 70 eightieth 80 ninetieth 90"
).split()
ORDINALS = {word: int(value) for word, value in zip(_IRREGULAR[::2], _IRREGULAR[1::2], strict=True)} | {
    f"{word}th": UNITS[word] for word in ("four", "six", "seven", "ten", "eleven", *list(UNITS)[13:])
}
_FIRST = frozenset({"a", *_WORDS, *ORDINALS})
"""Words that a number in words may begin with."""
ROMAN = {
    tens + units: 10 * ten + unit
    for ten, tens in enumerate(("", "X", "XX", "XXX"))
    for unit, units in enumerate(("", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX"))
    if tens + units
}
_ROMAN_CAPITALS = {roman: value for roman, value in ROMAN.items() if len(roman) > 1}
SIGN = r"(?<![\w.])[-−–]"
_GROUPED = r"\d{1,3}(?:(?:,\d{3})+|(?:['’\u00a0\u2009\u202f]\d{3})+|(?: \d{3}){2,})(?!\d)|\d{1,2}(?:,\d\d)+,\d{3}(?!\d)"
"""Digits in groups; with plain spaces three groups at least, since "in 20 100 people" is two numbers."""
_TOKEN = re.compile(rf"(?:{SIGN})?(?:(?:{_GROUPED}|\d+)(?:\.\d+)?|(?<![\w.])\.\d+)|[A-Za-z]+")


@lru_cache(maxsize=1024)
def numbers_in(text: str) -> Sequence[tuple[float, int, int]]:
    """Return (value, start, end) of every number in ``text``, digits and words together (``2 million``, ``forty-two``).

    A minus sign belongs to its number. Ordinals count as their number (``is_ordinal_word`` tells them apart), Roman
    numerals from II in capitals too; fractions in words are left alone. Offsets are in characters.
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


def is_ordinal_word(text: str) -> bool:
    """Whether a number in words ends in an ordinal (``eighteenth``, ``twenty-first``)."""
    words = re.findall(r"[A-Za-z]+", text.casefold())
    return bool(words) and words[-1] in ORDINALS


def _read_number(text: str, tokens: list[tuple[str, int, int]], start: int) -> tuple[float, int] | None:
    first = tokens[start][0]
    if first[0].isalpha() and first not in _ROMAN_CAPITALS and first.casefold() not in _FIRST:
        return None
    total, group, position, last = 0.0, None, start, None
    while position < len(tokens):
        token, begin, _ = tokens[position]
        word = token.casefold()
        next_word = tokens[position + 1][0].casefold() if position + 1 < len(tokens) else ""
        if last == "digits" and begin == tokens[position - 1][2]:
            short = _SHORT_OF_MONEY if re.search(r"[$€£¥]\s?$", text[: tokens[start][1]]) else _SHORT
            return (group or 0.0) * short.get(token, 1), position + (token in short)
        if position > start and not re.fullmatch(r"[\s-]+", text[tokens[position - 1][2] : begin]):
            break
        if not token[0].isalpha():
            if position > start:
                break
            group, last = float(re.sub(r"[^\d.-]", "", re.sub("^[−–]", "-", token))), "digits"
        elif word in SCALES and group is not None:
            if word in _TIMES:
                group *= _TIMES[word]
            else:
                total, group = total + group * SCALES[word], 0.0
            last = "scale"
        elif word in ("a", "one") and position == start and next_word in SCALES:
            group, last = 1.0, "units"
        elif token in _ROMAN_CAPITALS and position == start:
            group, last = float(_ROMAN_CAPITALS[token]), "digits"
        elif word in ORDINALS and (last in (None, "scale", "and") or (last == "tens" and ORDINALS[word] < 10)):
            return total + (group or 0.0) + ORDINALS[word], position + 1
        elif word in _WORDS:
            value = _WORDS[word]
            if position == start + 1 and 10 <= (group or 0) <= 20 <= value:  # nineteen forty-five
                group, last, position = 100 * (group or 0) + value, "tens", position + 1
                continue
            if not (last in (None, "scale", "and") or (last == "tens" and value < 10)):
                break
            group, last = (group or 0.0) + value, "tens" if word in TENS else "units"
        elif word == "and" and last == "scale" and next_word in _WORDS:
            last = "and"
        else:
            break
        position += 1
    if group is None:
        return None
    return total + group, position

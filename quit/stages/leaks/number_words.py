"""Numbers in running English text, in digits or in words."""

from __future__ import annotations

import re

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
_SCALES = {"hundred": 100, "thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000, "trillion": 10**12}
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
_ROMAN = {
    "ii": 2,
    "iii": 3,
    "iv": 4,
    "vi": 6,
    "vii": 7,
    "viii": 8,
    "ix": 9,
    "xi": 11,
    "xii": 12,
    "xiii": 13,
    "xiv": 14,
    "xv": 15,
}
_ROMAN_CAPITALS = {numeral.upper(): value for numeral, value in _ROMAN.items()}
_TOKEN = re.compile(r"\d[\d,]*(?:\.\d+)?|[A-Za-z]+")


def numbers_in(text: str) -> list[tuple[float, int, int]]:
    """Return (value, start, end) of every number in ``text``, digits and words together (``2 million``, ``forty-two``).

    Ordinals count as their number (``is_ordinal_word`` tells them apart), Roman numerals from II in capitals too;
    fractions in words are left alone. Offsets are in characters.
    """
    found: list[tuple[float, int, int]] = []
    tokens = [(match.group(), *match.span()) for match in _TOKEN.finditer(text)]
    place = 0
    while place < len(tokens):
        read = _read_number(text, tokens, place)
        if read is None:
            place += 1
            continue
        value, after = read
        found.append((value, tokens[place][1], tokens[after - 1][2]))
        place = after
    return found


def _scale_after(tokens: list[tuple[str, int, int]], place: int) -> bool:
    return place + 1 < len(tokens) and tokens[place + 1][0].casefold() in _SCALES


def is_ordinal_word(text: str) -> bool:
    """Whether a number in words ends in an ordinal (``eighteenth``, ``twenty-first``)."""
    words = re.findall(r"[A-Za-z]+", text.casefold())
    return bool(words) and words[-1] in _ORDINALS


def _read_number(text: str, tokens: list[tuple[str, int, int]], start: int) -> tuple[float, int] | None:
    total, group, place, last = 0.0, None, start, None
    while place < len(tokens):
        token, begin, _ = tokens[place]
        word = token.casefold()
        if place > start and not re.fullmatch(r"[\s-]+", text[tokens[place - 1][2] : begin]):
            break
        if token[0].isdigit():
            if place > start:
                break
            group, last = float(token.replace(",", "")), "digits"
        elif word in _SCALES and group is not None:
            if word == "hundred":
                group *= 100
            else:
                total, group = total + group * _SCALES[word], 0.0
            last = "scale"
        elif word in ("a", "one") and place == start and _scale_after(tokens, place):
            group, last = 1.0, "units"
        elif token in _ROMAN_CAPITALS and place == start:
            group, last = float(_ROMAN_CAPITALS[token]), "digits"
        elif word in _ORDINALS and (last in (None, "scale", "and") or (last == "tens" and _ORDINALS[word] < 10)):
            return total + (group or 0.0) + _ORDINALS[word], place + 1
        elif word in _WORDS:
            value = _WORDS[word]
            fits = last is None or last == "scale" or last == "and" or (last == "tens" and value < 10)
            if not fits:
                break
            group, last = (group or 0.0) + value, "tens" if word in _TENS else "units"
        elif (
            word == "and" and last == "scale" and place + 1 < len(tokens) and tokens[place + 1][0].casefold() in _WORDS
        ):
            last = "and"
        else:
            break
        place += 1
    if group is None:
        return None
    return total + group, place

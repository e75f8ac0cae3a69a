"""Numbers, quantities and dates in running English text, in digits or in words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import isclose
from typing import NamedTuple
from unicodedata import numeric

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
MONTHS = re.compile(
    r"\b(?:(jan)(?:uary)?|(feb)(?:ruary)?|(mar)(?:ch)?|(apr)(?:il)?|(may)|(june?)|(july?)|(aug)(?:ust)?|(sept?)(?:ember)?|"
    r"(oct)(?:ober)?|(nov)(?:ember)?|(dec)(?:ember)?)\b\.?",
    re.IGNORECASE,
)
_SLASHED = re.compile(r"\b(\d{1,2})([/.-])(\d{1,2})(?:\2(\d{2,4}))?\b|\b(\d{4})-(\d\d)-(\d\d)\b")
SIGN = r"(?<![\w.])[-−–]"
_GROUPED = r"\d{1,3}(?:(?:,\d{3})+|(?:['’\u00a0\u2009\u202f]\d{3})+|(?: \d{3}){2,})(?!\d)|\d{1,2}(?:,\d\d)+,\d{3}(?!\d)"
"""Digits in groups; with plain spaces three groups at least, since "in 20 100 people" is two numbers."""
_TOKEN = re.compile(rf"(?:{SIGN})?(?:(?:{_GROUPED}|\d+)(?:\.\d+)?|(?<![\w.])\.\d+)|[A-Za-z]+")
_COUNT = r"(?P<count>an?|one|two|three|four|five|six|\d+)"
_UNITS_OF: dict[str, dict[str, float]] = {
    "length": {"mm millimetre millimeter": 1e-3, "cm centimetre centimeter": 1e-2, "m metre meter": 1,
               "km kilometre kilometer": 1e3, "foot feet ft": 0.3048, "inch inche": 0.0254, "yard yd": 0.9144,
               "mile": 1609.344},
    "mass": {"mg milligram": 1e-3, "g gram gramme": 1, "kg kilo kilogram": 1e3, "tonne ton": 1e6},
    "time": {"second sec": 1, "minute min": 60, "hour hr h": 3600, "day": 86_400, "week": 604_800,
             "year": 31_557_600, "decade": 315_576_000, "century centurie": 3_155_760_000},
    "$": {"$ dollar usd": 1}, "€": {"€ euro eur": 1}, "£": {"£ gbp": 1}, "¥": {"¥ yen": 1},
    "share": {"% percent": 0.01, "‰": 0.001},
    "°c": {"°c celsius": 1}, "°f": {"°f fahrenheit": 1},
}  # fmt: skip
_MEASURES = {
    unit: (kind, factor)
    for kind, units in _UNITS_OF.items()
    for names, factor in units.items()
    for unit in names.split()
}
"""Unit, without a final *s* -> what it measures, and its value in the unit that all of a kind are compared in."""
_UNIT = re.compile(r"[\s-]*(?:degrees\s+|per(?=\s+cent))?\s*(°\s?[CF]\b|[$€£¥%‰]|[A-Za-z]+)")
_CLOCK = re.compile(r"\b(\d{1,2})(?:[:.](\d\d))?\s*([ap])\.?\s?m\b\.?|\b([01]?\d|2[0-4]):([0-5]\d)\b", re.IGNORECASE)
_CENTURY = re.compile(r"\b(?:the\s+)?(\d{1,2}00)['’]?s\b")
_PART = {"half": 2, "halve": 2, "third": 3, "quarter": 4, "fifth": 5, "tenth": 10}
_FRACTION = re.compile(
    rf"\b(?:{_COUNT}[\s-])?(?P<part>half|halves|quarters?)\b|\b(?P<top>one|two|three|four)[\s-](?P<of>thirds?|fifths?|tenths?)\b"
    r"|(?<![\d/.,])(?P<over>\d{1,9})\s?[/⁄]\s?(?P<under>\d{1,9})(?![\d/])|(?P<sign>[½¼¾⅓⅔])",
    re.IGNORECASE,
)
_MORE = re.compile(
    rf"\b(?:{_COUNT}\s+(?P<unit>[a-z]+?)s?(?P<half>\s+and\s+a\s+half)?|half\s+an?\s+(?P<halved>[a-z]+))\b",
    re.IGNORECASE,
)


class Quantity(NamedTuple):
    """A number with what it measures (empty: nothing known), its value in that kind's unit, and its place."""

    number: float
    kind: str
    value: float
    start: int
    end: int

    def equals(self, other: Quantity) -> bool:
        """Whether two quantities are one; of a number without a unit, the numbers count."""
        if self.kind and other.kind:
            return self.kind == other.kind and isclose(self.value, other.value, rel_tol=1e-9)
        return isclose(self.number, other.number, rel_tol=1e-12)


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


def _scale_after(tokens: list[tuple[str, int, int]], position: int) -> bool:
    return position + 1 < len(tokens) and tokens[position + 1][0].casefold() in SCALES


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
        elif word in ("a", "one") and position == start and _scale_after(tokens, position):
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
            fits = last is None or last == "scale" or last == "and" or (last == "tens" and value < 10)
            if not fits:
                break
            group, last = (group or 0.0) + value, "tens" if word in TENS else "units"
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
def quantities_in(text: str) -> Sequence[Quantity]:
    """Return the quantities of a text: numbers with units, times of the day, centuries, fractions.

    >>> [quantity[:3] for quantity in quantities_in("5 km by 3 pm, half of the 1800s")]
    [(5.0, 'length', 5000.0), (3.0, 'clock', 900), (0.5, 'share', 0.5), (1800.0, 'century', 19)]
    """
    quantities: list[Quantity] = []
    for quantity in (*_special(text), *(_measured(text, *number) for number in numbers_in(text))):
        if all(quantity.end <= other.start or other.end <= quantity.start for other in quantities):
            quantities.append(quantity)
    return sorted(quantities, key=lambda quantity: quantity.start)


def _measured(text: str, number: float, start: int, end: int) -> Quantity:
    """Return a number with the currency before it or the unit after it."""
    if before := re.search(rf"({SIGN})?([$€£¥])\s?$", text[:start]):
        number = -number if before[1] else number
        return Quantity(number, *_scaled(before[2], number), before.start(), end)
    if ordinal := re.match(r"(?:st|nd|rd|th)?[\s-]+century\b", text[end:]):
        if ordinal[0][0] in "snrt" or is_ordinal_word(text[start:end]):
            return Quantity(number, "century", number, start, end + ordinal.end())
    unit = _UNIT.match(text[end:])
    name = re.sub(r"\s", "", unit[1]).casefold() if unit else ""
    name = {"c": "°c", "f": "°f", "cent": "percent"}.get(name, name)
    for form in (name, name.removesuffix("s")):
        if unit and form in _MEASURES and ((form != "°c" and form != "°f") or "°" in unit[0] or "degrees" in unit[0]):
            return Quantity(number, *_scaled(form, number), start, end + unit.end())
    return Quantity(number, "", number, start, end)


def _scaled(unit: str, number: float) -> tuple[str, float]:
    kind, factor = _MEASURES[unit]
    return kind, number * factor


def _special(text: str) -> Iterator[Quantity]:
    """Yield what is more than a number and its unit."""
    for match in _CLOCK.finditer(text):
        hour, minute, half, hour_of_day, minute_of_hour = match.groups()
        hours = int(hour) % 12 + 12 * (half in "pP") if half else int(hour_of_day)
        minutes = 60 * hours + int(minute or minute_of_hour or 0)
        yield Quantity(float(hour or minutes / 60), "clock", minutes, *match.span())
    for match in _CENTURY.finditer(text):
        yield Quantity(float(match[1]), "century", int(match[1]) // 100 + 1, *match.span())
    for match in _MORE.finditer(text):
        unit = (match["unit"] or match["halved"]).casefold()
        if _MEASURES.get(unit, ("",))[0] == "time" and (match["halved"] or match["half"] or match["count"][0] in "aA"):
            number = 0.5 if match["halved"] else _small(match["count"]) + 0.5 * bool(match["half"])
            yield Quantity(number, *_scaled(unit, number), *match.span())
    for match in _FRACTION.finditer(text):
        if part := match["part"] or match["of"]:
            value = _small(match["count"] or match["top"] or "one") / _PART[part.casefold().removesuffix("s")]
        else:
            value = numeric(match["sign"]) if match["sign"] else int(match["over"]) / (int(match["under"]) or 1)
        yield Quantity(value, "share", value, *match.span())


def _small(word: str) -> float:
    return 1.0 if word.casefold() in ("a", "an") else float(UNITS.get(word.casefold(), 0) or word)


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

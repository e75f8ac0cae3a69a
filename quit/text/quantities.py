"""Quantities in running English text: numbers with units, times of the day, centuries, fractions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import isclose
from typing import NamedTuple
from unicodedata import numeric

from quit.text.numbers import SIGN, UNITS, is_ordinal_word, numbers_in

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

"""Dates in running English text that name a day."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from quit.text.numbers import numbers_in

MONTHS = re.compile(
    r"\b(?:(jan)(?:uary)?|(feb)(?:ruary)?|(mar)(?:ch)?|(apr)(?:il)?|(may)|(june?)|(july?)|(aug)(?:ust)?|(sept?)(?:ember)?|"
    r"(oct)(?:ober)?|(nov)(?:ember)?|(dec)(?:ember)?)\b\.?",
    re.IGNORECASE,
)
_SLASHED = re.compile(r"\b(\d{1,2})([/.-])(\d{1,2})(?:\2(\d{2,4}))?\b|\b(\d{4})-(\d\d)-(\d\d)\b")


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

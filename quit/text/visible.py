"""Texts of others as they may be printed: what a terminal obeys, or what turns a line around, is shown as an escape."""

from __future__ import annotations

import re

# Control characters except tab and line feed, marks of direction, line and paragraph separators, lone surrogates.
_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
LONGEST = 4_000
"""Characters of an error's message; of a longer one the middle is left out, since its end says what to do."""


def visible(text: str) -> str:
    """Return a text with an escape, as JSON has it, for each character that a terminal obeys.

    >>> visible("\\x1b[31mred\\u202e")
    '\\\\u001b[31mred\\\\u202e'
    """
    return _OBEYED.sub(lambda char: f"\\u{ord(char[0]):04x}", text)


def message(text: str) -> str:
    """Return a text as the message of an error: visible, at most ``LONGEST`` characters of it."""
    text, half = visible(text), LONGEST // 2
    surplus = len(text) - 2 * half
    return text if surplus <= 0 else f"{text[:half]} [... {surplus:,} characters ...] {text[-half:]}"

"""Characters that nobody sees: invisible ones, which make equal texts differ, and those that a terminal obeys or that
turn a line around, which are shown as an escape."""

from __future__ import annotations

import re

# Unicode's Default_Ignorable_Code_Point and the Braille blank, without the two joiners, which scripts and emoji need.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_REVERSED = re.compile("\u202e([^\u202c\n]*)\u202c?")
# Control characters except tab and line feed, marks of direction, line and paragraph separators, lone surrogates.
_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
LONGEST = 4_000
"""Characters of an error's message; of a longer one the middle is left out, since its end says what to do."""


def without_invisible(text: str) -> str:
    """Return a text without invisible characters; what a mark turned around stands as it was read.

    >>> without_invisible("Pa\\u3164ris, \\u202esiraP")
    'Paris, Paris'
    """
    if text.isascii():
        return text
    return _INVISIBLE.sub("", _REVERSED.sub(lambda turned: turned[1][::-1], text))


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

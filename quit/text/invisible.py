"""Characters that nobody sees: they make equal texts differ."""

from __future__ import annotations

import re

# Unicode's Default_Ignorable_Code_Point and the Braille blank, without the two joiners, which scripts and emoji need.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_REVERSED = re.compile("\u202e([^\u202c\n]*)\u202c?")


def without_invisible(text: str) -> str:
    """Return a text without invisible characters; what a mark turned around stands as it was read.

    >>> without_invisible("Pa\\u3164ris, \\u202esiraP")
    'Paris, Paris'
    """
    if text.isascii():
        return text
    return _INVISIBLE.sub("", _REVERSED.sub(lambda turned: turned[1][::-1], text))

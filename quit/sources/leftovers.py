"""What a spreadsheet or a data frame leaves in a text: a list as it is printed, error cells, decimals of a year."""

from __future__ import annotations

import ast
import re

_QUOTED = r"(?:'[^'\\]*'|\"[^\"\\]*\")"
_ARRAY = re.compile(rf"\[\s*{_QUOTED}(?:\s+{_QUOTED})+\s*\]")
_LEFT = tuple(
    (re.compile(pattern, re.IGNORECASE), meaning)
    for pattern, meaning in (
        (r"#(?:REF|NAME|VALUE|DIV/0|NUM|NULL|SPILL|CALC|N/A)[!?]?|#{3,}", "an error cell of a spreadsheet"),
        (r"nan|<na>|nat|none|null|undefined", "a missing value"),
        (r"[-+]?\d+\.0", "a whole number that became a decimal"),
        (r"\d{4}-\d\d-\d\d[ T]00:00(?::00(?:\.0+)?)?(?:Z|\+00:00)?", "a date with the time of midnight"),
        (r".*\ufffd.*", "a text with a character that could not be read (U+FFFD)"),
        (r"\[.*\]|(?:array|Index|Series)\(.*\)", "a list written as a text"),
    )
)


def listed(text: str) -> list[str] | None:
    """Return the texts of a list that Python, JSON or NumPy wrote as a text; None for any other text.

    >>> listed("['Cairo', 'Al-Qahira']"), listed("['Cairo' 'Al-Qahira']"), listed("[None]"), listed("[sic]")
    (['Cairo', 'Al-Qahira'], ['Cairo', 'Al-Qahira'], [], None)
    """
    text = re.sub(r"\A\s*array\((\[.*\])(?:,\s*dtype=[^)]*)?\)\s*\Z", r"\1", text, flags=re.DOTALL).strip()
    if not (text.startswith("[") and text.endswith("]")):
        return None
    if _ARRAY.fullmatch(text):
        return [part[1:-1] for part in re.findall(_QUOTED, text)]
    try:
        parts = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    if not all(part is None or isinstance(part, str) for part in parts):
        return None
    return [part for part in parts if part is not None]


def left_over(text: str) -> str | None:
    """Return what a text looks like if a spreadsheet or a data frame left it; None for any other text."""
    return next((meaning for pattern, meaning in _LEFT if pattern.fullmatch(text.strip())), None)

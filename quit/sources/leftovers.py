"""What a spreadsheet or a data frame leaves in a text: a list as it is printed, error cells, decimals of a year."""

from __future__ import annotations

import ast
import json
import re
import warnings

_QUOTED = r"(?:'[^'\\]*'|\"[^\"\\]*\")"
_ARRAY = re.compile(rf"\[\s*{_QUOTED}(?:\s+{_QUOTED})+\s*\]")
_STRING = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""", re.DOTALL)
_OBJECT = re.compile(r"\[\s*\{.*\}\s*\]|\{\s*(?:'[^']*'|\"[^\"]*\")\s*:.*\}", re.DOTALL)
_MONTH = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
_LEFT = tuple(
    (re.compile(pattern, re.IGNORECASE | re.DOTALL), meaning)
    for pattern, meaning in (
        (
            r"#(?:REF|NAME|VALUE|DIV/0|NUM|NULL|SPILL|CALC|N/A|GETTING_DATA)[!?]?|#{3,}",
            "an error cell of a spreadsheet",
        ),
        (r"(?-i:#[A-ZÀ-Þ/0]{2,}[!?])|err:\d{3}|loading\.{3}", "an error cell of a spreadsheet"),
        (r"nan|<na>|n/a|nat|none|null|undefined", "a missing value"),
        (r"no[ _]?answer|unanswerable", "what a reader says that knows none"),
        (r"[-+]?\d+\.0", "a whole number that became a decimal"),
        (r"\d\.\d{3,}e\+\d\d", "a long number that lost its last digits"),
        (rf"\d{{1,2}}-(?:{_MONTH})|(?:{_MONTH})-\d\d", "a text that became a date"),
        (r".*_x000d_.*", "a text with a line end that a spreadsheet wrote as _x000D_"),
        (r"'\d+", "a number that a spreadsheet was told to take as a text"),
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
        try:
            parts = json.loads(text)
        except ValueError:  # not JSON
            with warnings.catch_warnings(action="ignore"):  # of escapes that Python does not know
                parts = ast.literal_eval(text)
            if re.search(r"''\s*''", _STRING.sub("''", text)):  # Python would join the two
                return None
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    if not all(part is None or isinstance(part, str) for part in parts):
        return None
    return [part for part in parts if part is not None]


def is_object(text: str) -> bool:
    """Return whether a text is an object, or a list of objects, that a data frame printed or a cell holds as JSON."""
    return _OBJECT.fullmatch(text.strip()) is not None


def left_over(text: str) -> str | None:
    """Return what a text looks like if a spreadsheet or a data frame left it; None for any other text."""
    return next((meaning for pattern, meaning in _LEFT if pattern.fullmatch(text.strip())), None)

"""Texts and ids in formats that have no quoting, and in spreadsheets.

What would end a field or a line is escaped, the same way every time.

Ids are percent-encoded where a format's rules forbid a character: white space (TREC files are split on it), control
characters, the double quote and the percent sign itself. So different ids stay different, and
``urllib.parse.unquote`` gives the id back. Texts of TSV files cannot be escaped, because their readers undo nothing:
each character that would end a field or a line becomes one space. Both are counted, for the manifest. Cells that a
spreadsheet would run as a formula have a ``'`` before them (OWASP, CSV injection).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc

from quit.errors import InputError

_UNSAFE = re.compile(r"[\s\x00-\x1f\x7f-\x9f\ufeff\"%]")
_ENDS = re.compile(r"[\t\n\v\f\r\x00\x1c-\x1f\x85\u2028\u2029]")
# Legal inside JSON, but str.splitlines() takes them for the end of a line.
_LINE_ENDS = str.maketrans({"\x85": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"})
EXAMPLES = 20
"""How many escaped ids a manifest names."""
ID_RULE = "white space, control characters, '\"' and '%' are percent-encoded as UTF-8 (urllib.parse.unquote undoes it)"
TEXT_RULE = "each tab, line end or NUL in a text became one space; TSV is unquoted (pandas: quoting=3)"
_BEGINS = "=+-@'\t\r\n\uff1d\uff0b\uff0d\uff20"  # the last four: full-width forms, which Excel takes too
CELL_RULE = (
    "a text that begins with = + - @ (or their full-width forms), ', a tab or a line end has a ' before it: remove one"
)


def safe_id(text: str) -> str:
    """Return an id without white space, control characters and quotes; distinct ids stay distinct.

    >>> safe_id("a b\\t100%")
    'a%20b%09100%25'

    Raises ``InputError`` for an empty id, which no format can write.
    """
    if not text:
        raise InputError("A question has an empty id: no export format can write it.")
    return _UNSAFE.sub(lambda match: quote(match.group(), safe=""), text)


def one_line(text: str) -> str:
    """Return a text that is one field of one line: each tab, line end or NUL is a space. Its length stays.

    >>> one_line("two\\tfields,\\r\\nthree lines")
    'two fields,  three lines'
    """
    return _ENDS.sub(" ", text)


def json_text(value: Any) -> str:
    """Return a value as JSON on one line, also for readers that take U+2028 or U+0085 for the end of a line."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return text if text.isascii() else text.translate(_LINE_ENDS)


def json_inside(text: str) -> str:
    """Return a text escaped for JSON, without its quotes. Joining such texts by a space escapes their join."""
    return json_text(text)[1:-1]


def escapes(ids: Iterable[str], texts: Iterable[str] = ()) -> dict[str, Any]:
    """Return, for a manifest, which ids were escaped and how, and how many of ``texts`` were changed by
    ``one_line``."""
    ids = [question_id for question_id in ids if safe_id(question_id) != question_id]
    changed = sum(one_line(text) != text for text in texts)
    return {
        "ids": len(ids),
        "id_rule": ID_RULE,
        "id_examples": {question_id: safe_id(question_id) for question_id in ids[:EXAMPLES]},
        "texts": changed,
        "text_rule": TEXT_RULE,
    }


def safe_cells(column: pa.ChunkedArray | pa.Array) -> Any:
    """Return texts that no spreadsheet runs (``CELL_RULE``). :func:`text_of_cell` gives every text back."""
    begins = pc.is_in(pc.utf8_slice_codeunits(column, 0, 1), value_set=pa.array(list(_BEGINS)))
    return pc.if_else(begins, pc.binary_join_element_wise("'", column, ""), column)


def text_of_cell(cell: str) -> str:
    """Return the text of a cell: without the ``'`` before what a spreadsheet would run.

    >>> text_of_cell("'=1+1"), text_of_cell("'s-Hertogenbosch")
    ('=1+1', "'s-Hertogenbosch")
    """
    return cell[1:] if cell[:1] == "'" and cell[1:2] and cell[1] in _BEGINS else cell

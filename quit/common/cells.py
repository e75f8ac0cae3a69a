"""Cells of spreadsheets: what one would run as a formula has a ``'`` before it (OWASP, CSV injection)."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_BEGINS = "=+-@'\t\r\n\uff1d\uff0b\uff0d\uff20"  # the last four: full-width forms, which Excel takes too
CELL_RULE = (
    "a text that begins with = + - @ (or their full-width forms), ', a tab or a line end has a ' before it: remove one"
)


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

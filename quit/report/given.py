"""The chapter *Given passages*: which contain an answer, which let a labeler answer, and the source's own relevance."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypedDict

import duckdb
import numpy as np

from quit.common.ids import HINT_CHARACTERS
from quit.common.rows import Row, sql_rows
from quit.evaluate.agreement import kappas
from quit.render.table import Table, number, percent, share

CONTAINS = ("by rules", "by the equivalence model", "no")
_RESAMPLES = 2000
_ROWS = f"""CREATE TEMP VIEW given_rows AS SELECT l.question_id, s.parametric IS TRUE AS parametric,
        l.label = 2 AS fully, h.convergence > 0 AS relevant, CASE r.producer WHEN 'none' THEN 'no'
        WHEN 'equivalence' THEN '{CONTAINS[1]}' ELSE '{CONTAINS[0]}' END AS contains
    FROM labels l JOIN splits s USING (question_id) JOIN ranked_hints r ON r.question_id = l.question_id
        AND r.rank + 1 = instr('{HINT_CHARACTERS}', l.permutation) JOIN hints h ON h.hint_id = r.hint_id"""
_CELLS = """
    SELECT contains, parametric, count(*) AS passages, count(*) FILTER (fully) AS fully FROM given_rows GROUP BY ALL
    ORDER BY ALL
"""
_PAIRS = ("fully", f"contains = '{CONTAINS[0]}'", "contains <> 'no'")


class GivenFigures(TypedDict):
    """``cells``: passages and those of label 2, by ``contains`` (of :data:`CONTAINS`) and ``parametric``;
    ``agreement`` of the source's relevance with label 2, with passages that contain an answer by rules, and with these
    by rules or model: (agreement, kappa, its 95% interval over questions), none where the source has no relevance."""

    cells: list[Row]
    agreement: list[tuple[float | None, ...]]


def given_figures(connection: duckdb.DuckDBPyConnection) -> GivenFigures:
    """Return what :func:`given_pieces` shows."""
    connection.execute(_ROWS)
    counts = ", ".join(
        f"count(*) FILTER ({one}({pair}) AND {other}relevant)"
        for pair in _PAIRS
        for one, other in (("", ""), ("", "NOT "), ("NOT ", ""), ("NOT ", "NOT "))
    )
    query = f"SELECT {counts} FROM given_rows WHERE relevant IS NOT NULL GROUP BY question_id ORDER BY question_id"
    cells = np.array(connection.execute(query).fetchall(), dtype=float).reshape(-1, len(_PAIRS), 4)
    same = cells[..., [0, 3]].sum(axis=(0, 2)) / np.maximum(cells.sum(axis=(0, 2)), 1)
    agreement = [(one, *of) for one, of in zip(same.tolist(), kappas(cells, _RESAMPLES))] if len(cells) else []
    return {"cells": sql_rows(connection, _CELLS), "agreement": agreement}


def given_pieces(figures: GivenFigures | None) -> Iterator[str | Table]:
    """Yield the figures as tables, and what they say in words; nothing without figures."""
    if figures is None:
        return
    count = {(row["contains"], row["parametric"]): (row["passages"], row["fully"]) for row in figures["cells"]}
    rows = []
    for contains in CONTAINS:
        cells = [count.get((contains, parametric), (0, 0)) for parametric in (False, True)]
        total, fully = (sum(column) for column in zip(*cells, strict=True))
        rows.append((contains, total, fully, total - fully, *(share(right, of) for of, right in cells)))
    (_, has, _, silent, *_), _, (_, _, inferred, *_) = rows
    remembered = count.get(("no", True), (0, 0))[1]
    yield (
        f"Contained but unanswered: {silent:,} of {has:,} passages that contain a gold answer, by rules. Answered "
        f"without containing: {inferred:,} passages of label 2; of these, {remembered:,} of questions that a reader "
        "answers without any passage (remembered, perhaps). From the others a labeler inferred the answer, or guessed."
    )
    heads = ("contains a gold answer", "passages", "label 2", "label 1", "label 2 if not parametric", "if parametric")
    yield Table("Labels, contained answers and the probe", heads, rows)
    names = ("label 2", "contains an answer, by rules", "by rules or the equivalence model")
    table = [
        (name, percent(same), *(number(value, ".2f", "") for value in of))
        for name, (same, *of) in zip(names, figures["agreement"])
    ]
    if table:
        note = "Relevance: above 0 in the source. Intervals are over questions."
        yield Table("Agreement with the source's relevance", ("", "agreement", "kappa", "from", "to"), table, note=note)

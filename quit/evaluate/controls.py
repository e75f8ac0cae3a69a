"""How often readers are right in the controls of the probe (``probe.controls``)."""

from __future__ import annotations

from typing import Any

import duckdb

from quit.common.rows import sql_rows

_FIGURES = """
    WITH shares AS (
        SELECT question_id, avg(CASE label WHEN 2 THEN 1.0 ELSE 0.0 END) AS share
        FROM labels SEMI JOIN controls USING (question_id) GROUP BY 1
    )
    SELECT reader, control, count(*) AS questions, count(*) FILTER (correct) AS correct, avg(share) AS label_2
    FROM controls LEFT JOIN shares USING (question_id) GROUP BY 1, 2
    ORDER BY 1, list_position(['no hints', 'no question', 'other hints', 'shuffled words'], control)
"""


def control_figures(connection: duckdb.DuckDBPyConnection) -> list[dict[str, Any]]:
    """Return rows of reader, control, questions, correct, ``low`` and ``high`` (95% interval of the share that is
    correct, Wilson's) and ``label_2`` (mean share of label 2 among the passages of the same questions).

    ``connection``: has the tables ``controls`` and ``labels``.
    """
    rows = sql_rows(connection, _FIGURES)
    if not rows:
        return []
    from scipy import stats  # takes a second, for what few reports have

    for row in rows:
        row["low"], row["high"] = stats.binomtest(row["correct"], row["questions"]).proportion_ci(method="wilson")
    return rows

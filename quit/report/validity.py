"""The chapter *What the labels rest on*: figures of hints, and what the page shows of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TypedDict

import duckdb

from quit.common.rows import Row, sql_rows
from quit.dataset.files import QUESTIONS_A_CHUNK, questions_at_once
from quit.evaluate.labels import SPLITS
from quit.render import plots
from quit.render.table import Plot, Table, percent, share
from quit.text.words import counted

_ROLES = {
    "questions": """SELECT count(*) AS questions, count(fewest_in_every_order) AS in_every,
            count(fewest_in_some_order) AS in_some,
            count(*) - count(without_hints) AS not_probed, avg(coalesce(without_hints, 0)) AS without
        FROM question_roles SEMI JOIN splits USING (question_id)""",
    "fewest": f"""SELECT coalesce(fewest_in_every_order::VARCHAR, 'no set') AS hints,
            {", ".join(f"count(*) FILTER (split = '{split}') AS {split}" for split in SPLITS)}, count(*) AS questions
        FROM question_roles JOIN splits USING (question_id) GROUP BY 1 ORDER BY 1""",
    "ranks": f"""SELECT rank, {", ".join(f"avg(shapley) FILTER (split = '{split}') AS {split}" for split in SPLITS)},
            avg(shapley) AS mean, stddev_samp(shapley) / sqrt(count(*)) AS error,
            count(smallest_set) / count(*) AS needed, avg(harmed) AS harmed
        FROM hint_roles JOIN splits USING (question_id) GROUP BY 1 ORDER BY 1""",
}
_ORDER = """SELECT hints, count(*) AS sets, count(*) FILTER (low < high) AS mixed FROM (
        SELECT question_id, subset, hints, min(label) AS low, max(label) AS high
        FROM labels JOIN subsets USING (permutation)
        WHERE question_id BETWEEN $first AND $last AND hints > 1 GROUP BY ALL)
    SEMI JOIN splits USING (question_id) GROUP BY 1"""


class RoleFigures(TypedDict):
    """Rows of the queries ``_ROLES`` (of ``questions`` one), and of :func:`_order`."""

    questions: list[Row]
    fewest: list[Row]
    ranks: list[Row]
    order: list[Row]


def role_figures(connection: duckdb.DuckDBPyConnection) -> RoleFigures:
    """Return what :func:`roles` shows: each question and hint counts once."""
    questions, fewest, ranks = (sql_rows(connection, query) for query in _ROLES.values())
    return {"questions": questions, "fewest": fewest, "ranks": ranks, "order": _order(connection)}


def _order(connection: duckdb.DuckDBPyConnection) -> list[Row]:
    """Return ``hints``, the number of ``sets`` of as many hints, and of them ``mixed``: with label 2 in some orders."""
    connection.execute("CREATE TEMP TABLE subsets AS SELECT DISTINCT permutation, subset, hints FROM passages")
    ids = [row[0] for row in connection.execute("SELECT question_id FROM splits ORDER BY 1").fetchall()]
    sets, mixed = Counter[int](), Counter[int]()
    [(passages,)] = connection.execute("SELECT count(*) FROM passages").fetchall()
    size = questions_at_once(QUESTIONS_A_CHUNK, len(ids), passages)
    for start in range(0, len(ids), size):  # all sets of a large collection would need gigabytes
        chunk = ids[start : start + size]
        for hints, *counts in connection.execute(_ORDER, {"first": chunk[0], "last": chunk[-1]}).fetchall():
            sets[hints] += counts[0]
            mixed[hints] += counts[1]
    return [{"hints": hints, "sets": sets[hints], "mixed": mixed[hints]} for hints in sorted(sets)]


def roles(figures: RoleFigures) -> Iterator[str | Table]:
    """Yield which hints suffice, whether their order matters, and what each rank contributes."""
    [total], fewest, ranks, order = figures["questions"], figures["fewest"], figures["ranks"], figures["order"]
    if not total["questions"]:
        return
    without, gain = total["without"], sum(row["mean"] for row in ranks)
    notes = {"labelers were not probed, which counts as 0": "not_probed"}
    yield (
        f"Of {counted(total['questions'], 'question')}, {total['in_every']:,} have a set of hints that suffices in "
        f"every order, {total['in_some']:,} one that suffices in some order. Of the passages with all hints "
        f"{percent(without + gain)} have label 2: {percent(without)} is success without hints, {percent(gain)} the "
        "sum of the mean contributions."
        + "".join(f" Questions of which {what}: {total[name]:,}." for what, name in notes.items() if total[name])
    )
    series = {split: [row[split] for row in fewest] for split in SPLITS}
    svg = plots.bars("plot-fewest", [row["hints"] for row in fewest], series, "questions")
    rows, heads = [[*row.values()] for row in fewest], ["hints", *SPLITS, "all"]
    yield Plot("Fewest hints that suffice in every order", heads, rows, name="plot-fewest", svg=svg)
    if order:  # one hint has one order
        line = {"all": {row["hints"]: row["mixed"] / row["sets"] for row in order}}
        svg = plots.lines("plot-order", line, "hints in the set", "sets whose order matters")
        rows = [[*row.values(), share(row["mixed"], row["sets"])] for row in order]
        heads = ["hints", "sets", "order matters", "share"]
        yield Plot("Sets whose order matters", heads, rows, name="plot-order", svg=svg)
    means = {split: {row["rank"] + 1: row[split] for row in ranks if row[split] is not None} for split in SPLITS}
    svg = plots.lines("plot-ranks", means, "rank by convergence, 1 is best", "mean contribution")
    rows = [[row["rank"] + 1, *map(percent, [*row.values()][1:])] for row in ranks]
    heads = ["rank by convergence", *SPLITS, "all", "standard error", "in a minimal set", "lowers"]
    yield Plot("Mean contribution of hints by rank", heads, rows, name="plot-ranks", svg=svg)

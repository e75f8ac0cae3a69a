"""The chapter *Labels*: by split with the bounds that follow, by number of hints, type and difficulty; answers that
splits share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import duckdb

from quit.evaluate.labels import SPLITS, labels_by_split, shared_answers
from quit.render import plots
from quit.render.table import Plot, Table, percent, plain_name, share, table_1
from quit.report.charts import Pieces, shares_by_hints
from quit.report.facts import Facts, Row, Splits
from quit.text.words import counted


def split_figures(connection: duckdb.DuckDBPyConnection) -> Splits:
    splits = connection.sql("SELECT question_id, split FROM splits").to_arrow_table()
    questions = connection.sql("SELECT question_id, answers FROM questions ORDER BY question_id").to_arrow_table()
    labels = connection.sql("SELECT question_id, label FROM labels").to_arrow_reader()
    by_split = [
        {**asdict(row), "without_label_2": row.without_label_2, "bound": row.bound, "share": row.share}
        for row in labels_by_split(splits, labels)
    ]
    rows = [asdict(row) for row in shared_answers(splits, questions)]
    return {"labels": by_split, "shared": rows}


def label_pieces(facts: Facts) -> Pieces:
    """Labels by split with the bounds that follow, by number of hints, type and difficulty; table 1."""
    figures = facts["statistics"]
    if shares_by_split := {row["split"]: share(row["parametric"], row["questions"]) for row in facts["drawn_from_all"]}:
        shares = ", ".join(f"{shares_by_split[split]} of {split}" for split in SPLITS if split in shares_by_split)
        yield f"Splits are drawn from all questions (split.train = any). Answered without hints: {shares}."
    if figures:
        yield _by_hints(figures)
        for key, column, title in (("by_difficulty", "difficulty_bin", "difficulty"), ("by_type", "coarse", "type")):
            order = [row["bin"] for row in facts["difficulty"]["bins"]] if title == "difficulty" else []
            if figures[key]:
                yield _shares(figures[key], column, title, order)
    yield from (_shared_answers(row) for row in facts["splits"]["shared"] if row["answers"])
    if rows := facts["splits"]["labels"]:
        yield _labels_by_split(rows, figures)


def _labels_by_split(rows: Sequence[Row], figures: Row | None) -> Table:
    """Return labels by split, the bounds that follow, and the figures of table 1."""
    figure_rows = table_1(figures["summary"]).rows if figures else ()
    cells = {
        "questions": [row["questions"] for row in rows],
        "without label 2": [row["without_label_2"] for row in rows],
        "highest Hit, RR, Recall": [row["bound"] for row in rows],
        "passages": [row["passages"] for row in rows],
        "label 2": [row["label_2"] for row in rows],
        "share of label 2": [percent(row["share"]) for row in rows],
    }
    table = [*cells.items(), *((name, values) for name, *values in figure_rows if name not in cells)]
    note = (
        "A question without any passage of label 2 counts as 0 in the means of Hit, RR and Recall at label 2, whatever "
        "a system retrieves. So the share of the other questions is the highest mean that a system can reach. The rows "
        "after the labels are the paper's table 1."
    )
    heads = ("", *(row["split"] for row in rows))
    return Table("The dataset in figures", heads, [(name, *values) for name, values in table], note=note)


def _by_hints(figures: Row) -> Plot:
    by_split: dict[str, dict[int, float]] = {row["split"]: {} for row in figures["summary"]}
    for row in figures["by_hints"]:
        by_split[row["split"]].setdefault(row["n_hints"], 0.0)
        if row["label"] == 2:
            by_split[row["split"]][row["n_hints"]] = row["share"]
    return shares_by_hints("by-hints", by_split)


def _shares(rows: list[Row], column: str, title: str, order: Sequence[str]) -> Plot:
    """Share of label 2 in each group of all splits, those of ``order`` first."""
    groups: dict[str, list[int]] = {name: [0, 0] for name in order}
    for row in rows:
        if row["split"] == "all":
            counts = groups.setdefault(row[column], [0, 0])
            counts[0] += row["passages"]
            counts[1] += row["passages"] if row["label"] == 2 else 0
    values = [right / count if count else 0.0 for count, right in groups.values()]
    names = [plain_name(name) for name in groups]
    svg = plots.bars(f"plot-by-{title}", names, {"label 2": values}, "fully relevant (label 2)", share=True)
    cells = [(name, *counts, share(counts[1], counts[0])) for name, counts in zip(names, groups.values(), strict=True)]
    heads = (title, "passages", "label 2", "share")
    return Plot(f"Fully relevant passages by {title}", heads, cells, name=f"plot-by-{title}", svg=svg)


def _shared_answers(row: Row) -> str:
    answers = "; ".join(row["answers"][:5]) + (" …" if len(row["answers"]) > 5 else "")
    return (
        f"{row['first']} and {row['second']} share {counted(len(row['answers']), 'gold answer')} (of "
        f"{row['first_questions']:,} and {counted(row['second_questions'], 'question')}): {answers}."
    )

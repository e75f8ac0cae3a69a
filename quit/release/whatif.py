"""What the labels would be by another rule (:mod:`quit.release.rules`), as tables, and by people's audit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from quit.dataset.release import is_release, open_release
from quit.dataset.workspace import verification_of
from quit.engine.planning import last_build
from quit.engine.workspace import Workspace
from quit.evaluate.labels import ALL
from quit.release.rules import AuditedShare, Effect, Figures
from quit.render.table import Table, interval, percent
from quit.text.words import counted

_HEADS = ("passages", "label 2", "then", "to 1", "to 2", "flip")
_AUDITED = ("", "now", "then", "people", "interval")


def shares_of_people(path: str | Path, effect: Effect) -> list[AuditedShare]:
    """Return the shares of label 2 now and under a rule beside those that people's audit comes to
    (:func:`quit.review.audit.audit_figures`); none without one."""
    if is_release(path):
        people = open_release(path).facts.get("verification") or {}
    else:
        people = verification_of(last_build(Workspace.open(path)))
    figures = {}
    for row in effect["labels"]:
        if row["hints"] is None or row["split"] == ALL:
            figures[row["split"] if row["hints"] is None else counted(row["hints"], "hint")] = row
    return [
        {"of": row["of"], "now": counts["label_2"] / counts["count"],
         "then_least": counts["then_least"] / counts["count"], "then_most": counts["then_most"] / counts["count"],
         "estimate": row["estimate"], "low": row["low"], "high": row["high"]}
        for row in (people.get("audit") or {}).get("shares", ()) if (counts := figures.get(row["of"]))
    ]  # fmt: skip


def pieces(effect: Effect, max_questions: int) -> list[Table | str]:
    """Return a rule's effect in full, with so many of the changed questions."""
    labels = [(row["split"], row["hints"] or ALL, *_cells(row)) for row in effect["labels"]]
    questions = [(row["split"], *_cells(row)) for row in effect["questions"]]
    changes = {True: "loses all", False: "gains some"}
    changed = [
        (row["question_id"], row["split"], changes[row["loses"]], "" if row["certain"] else "may be")
        for row in effect["changed"]
    ]
    heads = ("split", "questions", "now", "then", "lose all", "gain", "change")
    listed = ("question", "split", "label 2", "")
    tables = [
        Table("Labels", ("split", "hints", *_HEADS), labels),
        Table("Questions with some label 2", heads, questions),
        Table("Questions that change", listed, changed[:max_questions], (1, 2, 3), more=len(changed[max_questions:])),
        Table("Share of label 2, with people's audit", _AUDITED, [_audited(row) for row in effect.get("people", ())]),
    ]
    return [f"Label 2: {effect['title']}.", *(table for table in tables if table.rows)]


def _audited(row: AuditedShare) -> tuple[str, ...]:
    then = _range(percent(row["then_least"]), percent(row["then_most"]))
    return row["of"], percent(row["now"]), then, percent(row["estimate"]), interval(row)


def summary(effects: Sequence[Effect]) -> Table:
    """Return a line for each rule, over all splits."""
    rows = [
        (effect["title"], *_cells(effect["labels"][-1])[1:], _cells(effect["questions"][-1])[_HEADS.index("to 1")])
        for effect in effects
    ]
    note = (
        f"Of {effects[0]['labels'][-1]['count']:,} passages. Flip: share whose label changes. Lose all: questions with "
        "some label 2 now and none then. A range: some labelers were not asked about some passages (labels.partial)."
    )
    return Table("Labels under other rules", ("rule", *_HEADS[1:], "lose all"), rows, (0,), note)


def _cells(row: Figures) -> tuple[int | str, ...]:
    """Return the figures under ``_HEADS``."""
    low = (row["then_least"], row["to_1_least"], row["to_2_least"])
    high = (row["then_most"], row["to_1_most"], row["to_2_most"])
    ranges = (_range(f"{least:,}", f"{most:,}") for least, most in zip(low, high, strict=True))
    flips = (percent(sum(changes[1:]) / row["count"]) for changes in (low, high))
    return row["count"], row["label_2"], *ranges, _range(*flips)


def _range(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"

"""What the labels would be by another rule (:mod:`quit.release.rules`), as tables, and by people's audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from quit.dataset.release import is_release, open_release
from quit.dataset.workspace import verification_of
from quit.engine.planning import last_build
from quit.engine.workspace import Workspace
from quit.evaluate.labels import ALL
from quit.render.table import Table, interval, percent
from quit.text.words import counted


def shares_of_people(place: str | Path, effect: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the shares of label 2 now and under a rule beside those that people's audit comes to; none without one.

    Keys: ``of`` (a split, all, or a number of hints), ``now``, ``then_least``, ``then_most``, and as of
    :func:`quit.review.audit.audit_figures` ``estimate``, ``low``, ``high``.
    """
    if is_release(place):
        people = open_release(place).facts.get("verification") or {}
    else:
        people = verification_of(last_build(Workspace.open(place)))
    figures = {}
    for row in effect["labels"]:
        if row["hints"] is None or row["split"] == ALL:
            figures[row["split"] if row["hints"] is None else counted(row["hints"], "hint")] = row
    rows = []
    for row in (people.get("audit") or {}).get("shares", ()):
        if counts := figures.get(row["of"]):
            names = {"now": "label_2", "then_least": "then_least", "then_most": "then_most"}
            shares = {new: counts[old] / counts["count"] for new, old in names.items()}
            rows.append({"of": row["of"], **shares, **{name: row[name] for name in ("estimate", "low", "high")}})
    return rows


def pieces(effect: dict[str, Any], most: int) -> list[Table | str]:
    """Return a rule's effect in full; ``most``: questions that are listed."""
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
        Table("Questions that change", listed, changed[:most], (1, 2, 3), more=len(changed[most:])),
        Table("Share of label 2, with people's audit", _AUDITED, [_audited(row) for row in effect.get("people", ())]),
    ]
    return [f"Label 2: {effect['title']}.", *(table for table in tables if table.rows)]


_AUDITED = ("", "now", "then", "people", "interval")


def _audited(row: Mapping[str, Any]) -> tuple[str, ...]:
    then = " to ".join(dict.fromkeys(percent(row[f"then_{end}"]) for end in ("least", "most")))
    return row["of"], percent(row["now"]), then, percent(row["estimate"]), interval(row)


def summary(effects: Sequence[dict[str, Any]]) -> Table:
    """Return a line for each rule, over all splits."""
    rows = [
        (effect["title"], *_cells(effect["labels"][-1])[1:], _between(effect["questions"][-1], "to_1"))
        for effect in effects
    ]
    note = (
        f"Of {effects[0]['labels'][-1]['count']:,} passages. Flip: share whose label changes. Lose all: questions with "
        "some label 2 now and none then. A range: some labelers were not asked about some passages (labels.partial)."
    )
    return Table("Labels under other rules", ("rule", *_HEADS[1:], "lose all"), rows, (0,), note)


_HEADS = ("passages", "label 2", "then", "to 1", "to 2", "flip")


def _cells(row: dict[str, Any]) -> tuple[Any, ...]:
    changes = (_between(row, name) for name in ("then", "to_1", "to_2"))
    return row["count"], row["label_2"], *changes, _between(row, "to_1", "to_2", of="count")


def _between(row: dict[str, Any], *names: str, of: str | None = None) -> str:
    """Return the sum of some figures, as a share ``of`` another one where named: a number, or a least and a most."""
    bounds = [sum(row[f"{name}_{end}"] for name in names) for end in ("least", "most")]
    return " to ".join(dict.fromkeys(f"{bound:,}" if of is None else percent(bound / row[of]) for bound in bounds))

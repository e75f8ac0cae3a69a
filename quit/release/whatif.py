"""What the labels would be by another rule: other labelers, more of them right, another judge. No model is asked.

Where a labeler was not asked about a passage (``labels.partial``), figures have a least and a most: as if it were
wrong, or right, about all of these. Definitions: docs/research/validity.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quit.dataset.dataset import FULLY, Dataset
from quit.dataset.release import is_release, verify
from quit.engine.planning import last_build
from quit.engine.workspace import Workspace
from quit.errors import SettingsError
from quit.evaluate.labels import ALL, SPLITS
from quit.release.create import subject_of, subject_of_release
from quit.render.table import Table, percent
from quit.stages.labelling.answers import accepted_answers, fully_relevant, matching_rows
from quit.text.words import counted

AT_A_TIME = 256
"""Questions that are looked at together."""
FIGURES = ("count", "label_2", "then_least", "then_most", "to_1_least", "to_1_most", "to_2_least", "to_2_most")
"""Of passages, or of questions with some passage of label 2: all, those with label 2 now and then, and changes."""
_VERDICT = ["question_id", "answer_key", "correct"]


@dataclass(frozen=True)
class Rule:
    """A label rule: 2 where at least ``least`` of these labelers answer correctly. ``title``: in words."""

    labelers: Sequence[str]
    least: int
    title: str


class Answered:
    """The labels of a dataset and what its labelers answered.

    ``judge``: whose verdicts decide wherever people's do not; None: those in force. ``second``: the table
    ``second_verdicts``. Raises ``SettingsError`` where no verdict of the judge is kept.
    """

    def __init__(self, dataset: Dataset, judge: str | None = None, second: pa.Table | None = None) -> None:
        self.dataset = tables = dataset
        self.names, self._by = [info.name for info in tables.labelers], f" by {judge}" if judge else ""
        verdicts = _verdicts_of(judge, tables.verdicts, second) if judge else None
        self._right: dict[str, np.ndarray] = {}
        for name in self.names:
            distinct = tables.answers[name].distinct
            valid = matching_rows(distinct, tables.valid_answers, "answer") >= 0
            self._right[name] = valid if verdicts is None else accepted_answers(tables.answers[name], verdicts)

    def rule(self, labelers: Sequence[str] = (), without: Sequence[str] = (), least: int | None = None) -> Rule:
        """Return the rule in force with these changes. Raises ``SettingsError`` for a labeler that is none, and where
        fewer are left than must be right."""
        if unknown := {*labelers, *without} - {*self.names}:
            raise SettingsError(f"{min(unknown)!r} is no labeler here. Labelers: {', '.join(self.names)}.")
        left = [name for name in self.names if name in (labelers or self.names) and name not in without]
        needed = least or self.dataset.least
        if len(left) < needed:
            who = counted(needed, "labeler")
            raise SettingsError(f"{who} must be right of {len(left)}: name more labelers, or lower --least.")
        return Rule(left, needed, f"at least {needed} of {', '.join(left)}{self._by}")

    def standard_rules(self) -> list[Rule]:
        """Return the rules that leave one labeler out, and the one that asks for two."""
        least = self.dataset.least
        left = {name: [other for other in self.names if other != name] for name in self.names}
        rules = [Rule(others, least, f"without {name}") for name, others in left.items() if len(others) >= least]
        return [*rules, *([Rule(self.names, 2, "two labelers right")] if least < 2 <= len(self.names) else [])]

    def label_2(self, rules: Sequence[Rule], positions: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return for each rule which passages of some questions have label 2, at least and at most: bool, shape
        (questions, passages)."""
        least, most = {}, {}
        for name, right in self._right.items():
            answers, table = self.dataset.answers[name], f"answers of {name}"
            first = np.array([answers.starts[self.dataset.ids[position]][0] for position in positions.tolist()])
            least[name] = right[first[:, None] + self.dataset.column(table, positions, "number")]
            asked = True if answers.asked is None else self.dataset.column(table, positions, "asked")
            most[name] = least[name] | ~np.asarray(asked)
        ends = [
            [fully_relevant([of[name] for name in rule.labelers], rule.least) for of in (least, most)] for rule in rules
        ]
        return [(low, high) for low, high in ends]

    def effects(self, rules: Sequence[Rule]) -> list[dict[str, Any]]:
        """Return what each rule changes.

        Keys: ``title``, ``labelers``, ``least``; ``labels``: figures of passages by split and number of hints (None:
        all); ``questions``: the same of questions with some label 2, by split; ``changed``: the questions that lose
        every label 2 or gain one (``loses``), ``certain`` unless that rests on answers not asked for.
        """
        hints = self.dataset.permutations.hints
        order, questions = np.argsort(hints, kind="stable"), np.arange(len(self.dataset.ids))
        starts = np.flatnonzero(np.diff(hints[order], prepend=0))
        figures = np.zeros((len(rules), len(FIGURES), len(questions), len(starts)), dtype=np.int32)
        for some in np.split(questions, questions[AT_A_TIME::AT_A_TIME]):
            now = self.dataset.labels_of(some) == FULLY
            for number, then in enumerate(self.label_2(rules, some)):
                passages = _figures(now, *then)[..., order]
                figures[number][:, some] = np.add.reduceat(passages, starts, axis=-1, dtype=np.int32)
        return [self._effect(rule, of_rule) for rule, of_rule in zip(rules, figures, strict=True)]

    def _effect(self, rule: Rule, figures: np.ndarray) -> dict[str, Any]:
        now, least, most = (of.any(axis=-1) for of in figures[1:4])
        of_questions = _figures(now, least, most)
        changed = [
            {"question_id": self.dataset.ids[place], "split": self.dataset.split_names[place],
             "loses": bool(of_questions[5, place]), "certain": bool(of_questions[[4, 6], place].any())}
            for place in np.flatnonzero(of_questions[[5, 7]].any(axis=0)).tolist()
        ]  # fmt: skip
        questions = [row for row in self._rows(of_questions[..., None]) if row.pop("hints") is None]
        facts = {"title": rule.title, "labelers": list(rule.labelers), "least": rule.least}
        return {**facts, "labels": self._rows(figures), "questions": questions, "changed": changed}

    def _rows(self, figures: np.ndarray) -> list[dict[str, Any]]:
        """Return figures of shape (figures, questions, numbers of hints) by split and hints."""
        split = np.array(self.dataset.split_names, dtype=object)
        rows = []
        for name in [*(each for each in SPLITS if each in self.dataset.split_names), ALL]:
            sums = figures[:, (split == name) | (name == ALL)].sum(axis=1)
            for hints, column in [*enumerate(sums.T, start=1), (None, sums.sum(axis=1))]:
                rows.append({"split": name, "hints": hints, **dict(zip(FIGURES, column.tolist(), strict=True))})
        return rows


def opened(place: str | Path, judge: str | None = None) -> Answered:
    """Open a release or a finished workspace. Raises as ``verify``, ``last_build`` and :class:`Answered` do."""
    if is_release(place):
        release = verify(place)
        return Answered(subject_of_release(release).labelled(content_id=release.content_id), judge)
    workspace = Workspace.open(place)
    return Answered(subject_of(last_build(workspace)).labelled(), judge, workspace.read("second_verdicts"))


def _verdicts_of(judge: str, verdicts: pa.Table, second: pa.Table | None) -> pa.Table:
    """Return the verdicts of people, then all of a judge: the first one on an answer counts."""
    of_people = pc.fill_null(pc.equal(verdicts["basis"], "review"), False)
    kept = [verdicts.filter(pc.invert(of_people)), *([] if second is None else [second])]
    judges = {name: table for table in reversed(kept) for name in table["judge"].unique().to_pylist() if name}
    if judge not in judges:
        names = ", ".join(sorted(judges)) or "none"
        where = "" if second is not None else " A release holds the verdicts in force only; name its workspace."
        raise SettingsError(f"No verdicts of the judge {judge!r} are kept here. Kept: {names}.{where}")
    return pa.concat_tables(table.select(_VERDICT) for table in (verdicts.filter(of_people), judges[judge]))


def _figures(now: np.ndarray, least: np.ndarray, most: np.ndarray) -> np.ndarray:
    """Return ``FIGURES`` of which items have label 2: bool, shape (figures, *now.shape)."""
    return np.stack([np.ones_like(now), now, least, most, now & ~most, now & ~least, ~now & least, ~now & most])


def pieces(effect: dict[str, Any], most: int) -> list[Table | str]:
    """Return a rule's effect in full; ``most``: questions that are listed."""
    labels = [(row["split"], row["hints"] or ALL, *_cells(row)) for row in effect["labels"]]
    questions = [(row["split"], *_cells(row)) for row in effect["questions"]]
    changed = [
        (
            row["question_id"],
            row["split"],
            "loses all" if row["loses"] else "gains some",
            "" if row["certain"] else "may be",
        )
        for row in effect["changed"]
    ]
    tables = (
        Table("Labels", ("split", "hints", *_HEADS), labels),
        Table(
            "Questions with some label 2",
            ("split", "questions", "now", "then", "lose all", "gain", "change"),
            questions,
        ),
        Table(
            "Questions that change",
            ("question", "split", "label 2", ""),
            changed[:most],
            (1, 2, 3),
            more=len(changed[most:]),
        ),
    )
    return [f"Label 2: {effect['title']}.", *(table for table in tables if table.rows)]


def summary(effects: Sequence[dict[str, Any]]) -> Table:
    """Return a line for each rule, over all splits."""
    rows = [
        (effect["title"], *_cells(effect["labels"][-1]), _between(effect["questions"][-1], "to_1"))
        for effect in effects
    ]
    return Table("Labels under other rules", ("rule", *_HEADS, "questions that lose all"), rows)


_HEADS = ("passages", "label 2", "then", "to 1", "to 2", "flip")


def _cells(row: dict[str, Any]) -> tuple[Any, ...]:
    changes = (
        _between(row, "then"),
        _between(row, "to_1"),
        _between(row, "to_2"),
        _between(row, "to_1", "to_2", of="count"),
    )
    return row["count"], row["label_2"], *changes


def _between(row: dict[str, Any], *names: str, of: str | None = None) -> str:
    """Return the sum of some figures, as a share ``of`` another one where named: a number, or a least and a most."""
    bounds = [sum(row[f"{name}_{end}"] for name in names) for end in ("least", "most")]
    return " to ".join(dict.fromkeys(f"{bound:,}" if of is None else percent(bound / row[of]) for bound in bounds))

"""Labels by another rule: other labelers, more of them right, another judge. No model is asked.

Where a labeler was not asked about a passage (``labels.partial``), figures have a least and a most: as if it were
wrong, or right, about all of these. Definitions: docs/research/validity.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NotRequired, TypedDict, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quit.common.columns import is_in
from quit.dataset.dataset import FULLY, Dataset
from quit.dataset.files import QUESTIONS_A_CHUNK, questions_at_once
from quit.dataset.release import ReaderInfo
from quit.errors import SettingsError
from quit.evaluate.labels import ALL, SPLITS
from quit.release.gates import Subject
from quit.release.subjects import subject_from
from quit.release.view import open_to_read
from quit.review.audit import Estimate
from quit.stages.labelling.answers import accepted_answers
from quit.text.words import counted


class Figures(TypedDict):
    """A split's passages of a number of hints (None: all; not there: its questions, by some passage of label 2): all,
    those with label 2 now and then, and those whose label becomes 1 or 2."""

    split: str
    hints: NotRequired[int | None]
    count: int
    label_2: int
    then_least: int
    then_most: int
    to_1_least: int
    to_1_most: int
    to_2_least: int
    to_2_most: int


class ChangedQuestion(TypedDict):
    """A question that ``loses`` every label 2, or gains its first; ``certain`` unless that rests on answers not asked
    for."""

    question_id: str
    split: str
    loses: bool
    certain: bool


class AuditedShare(Estimate):
    """The shares of label 2 ``of`` a split, all or a number of hints: now, under the rule, and by people's audit."""

    of: str
    now: float
    then_least: float
    then_most: float


class Effect(TypedDict):
    """What a rule changes of passages and of questions; the last row of each is of all splits and hints."""

    title: str
    labelers: list[str]
    least: int
    labels: list[Figures]
    questions: list[Figures]
    changed: list[ChangedQuestion]
    people: NotRequired[list[AuditedShare]]


@dataclass(frozen=True)
class Rule:
    """A label rule: 2 where at least ``min_right`` of these labelers answer correctly. ``title``: in words."""

    labelers: Sequence[str]
    min_right: int
    title: str


class Answered:
    """The labels of some questions and what labelers answered.

    ``datasets``: the questions, in chunks. ``verdicts``: those that decide, of people and ``judge``; None: those in
    force. Raises ``InputError`` for tables that do not fit together.
    """

    def __init__(self, datasets: Iterable[Dataset], judge: str | None = None, verdicts: pa.Table | None = None) -> None:
        self._by = f", judged by {judge}" if judge else ""
        self._ids: list[str] = []
        self._split_names: list[str] = []
        now, right, hints, counts = [], [], [], []
        for dataset in datasets:
            every = np.arange(len(dataset.ids))
            hints.append(dataset.rows.hints)
            counts.append(dataset.rows.counts)
            self._ids += dataset.ids
            self._split_names += dataset.split_names
            now.append(dataset.labels_of(every) == FULLY)
            of_chunk = verdicts
            if verdicts is not None:
                of_chunk = verdicts.filter(is_in(verdicts["question_id"], pa.array(dataset.ids)))
            right.append({info.name: _right(dataset, info, every, of_chunk) for info in dataset.labelers})
        self._now, self._hints = np.concatenate(now), np.concatenate(hints)
        self._starts = np.concatenate([[0], np.cumsum(np.concatenate(counts))])  # of questions' passages
        self._right = {name: np.concatenate([part[name] for part in right], axis=1) for name in right[0]}

    def rule(self, labelers: Sequence[str] = (), without: Sequence[str] = (), min_right: int = 1) -> Rule:
        """Return the paper's rule with these changes. Raises ``SettingsError`` for a labeler that is none, and where
        fewer are left than must be right."""
        if unknown := {*labelers, *without} - {*self._right}:
            raise SettingsError(f"{min(unknown)!r} is no labeler here. Labelers: {', '.join(self._right)}.")
        chosen = [name for name in self._right if name in (labelers or self._right) and name not in without]
        if len(chosen) < min_right:
            who = counted(min_right, "labeler")
            raise SettingsError(f"{who} must be right of {len(chosen)}: name more labelers, or lower --least.")
        return Rule(chosen, min_right, f"at least {min_right} of {', '.join(chosen)}{self._by}")

    def standard_rules(self) -> list[Rule]:
        """Return the rules that leave one labeler out, and the one that asks for two."""
        names = [*self._right]
        rules = [Rule([other for other in names if other != name], 1, f"without {name}") for name in names]
        rules.append(Rule(names, 2, "two labelers right"))
        return [rule for rule in rules if len(rule.labelers) >= rule.min_right]

    def label_2(self, rule: Rule) -> np.ndarray:
        """Return which passages have label 2, at least and at most: bool, shape (2, passages)."""
        return np.concatenate([self._label_2(rule, rows) for rows, _ in self._chunks()], axis=1)

    def _label_2(self, rule: Rule, rows: slice) -> np.ndarray:
        return np.count_nonzero([self._right[name][:, rows] for name in rule.labelers], axis=0) >= rule.min_right

    def _chunks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield the passages of some questions at a time, and where in these each question begins."""
        size = questions_at_once(QUESTIONS_A_CHUNK, len(self._ids), len(self._now))
        for first in range(0, len(self._ids), size):
            starts = self._starts[first : first + size + 1]
            yield slice(*starts[[0, -1]].tolist()), starts[:-1] - starts[0]

    def effects(self, rules: Sequence[Rule]) -> list[Effect]:
        """Return what each rule changes."""
        return [self._effect(rule) for rule in rules]

    def _effect(self, rule: Rule) -> Effect:
        hints = self._hints
        groups = {size: hints == size for size in np.unique(hints).tolist()} | {None: hints > 0}
        chunks = []
        for rows, starts in self._chunks():
            label_2 = np.concatenate([self._now[None, rows], self._label_2(rule, rows)])
            flags = _flags(label_2)
            sums = [np.add.reduceat(flags & inside[rows], starts, axis=-1, dtype=int) for inside in groups.values()]
            chunks.append([_flags(np.maximum.reduceat(label_2, starts, axis=-1)), *sums])
        of_questions, *of_groups = (np.concatenate(parts, axis=1) for parts in zip(*chunks, strict=True))
        question = dict(zip(_COUNTS, of_questions.astype(bool), strict=True))
        changed: list[ChangedQuestion] = [
            {"question_id": self._ids[place], "split": self._split_names[place],
             "loses": bool(question["to_1_most"][place]),
             "certain": bool(question["to_1_least"][place] or question["to_2_least"][place])}
            for place in np.flatnonzero(question["to_1_most"] | question["to_2_most"]).tolist()
        ]  # fmt: skip
        by_hints = [({"hints": size}, figures) for size, figures in zip(groups, of_groups, strict=True)]
        return {
            "title": rule.title, "labelers": [*rule.labelers], "least": rule.min_right, "labels": self._rows(by_hints),
            "questions": self._rows([({}, of_questions)]), "changed": changed,
        }  # fmt: skip

    def _rows(self, groups: Sequence[tuple[dict[str, int | None], np.ndarray]]) -> list[Figures]:
        """Return figures of shape (counts, questions) by split, for each group of passages."""
        splits = np.array(self._split_names, dtype=object)
        rows = (
            {"split": name, **group, **dict(zip(_COUNTS, figures[:, inside].sum(axis=1).tolist(), strict=True))}
            for name in (*SPLITS, ALL)
            if (inside := (splits == name) | (name == ALL)).any()
            for group, figures in groups
        )
        return cast(list[Figures], [row for row in rows if row["count"]])


def opened(path: str | Path, judge: str | None = None) -> Answered:
    """Open a release or a finished workspace. Raises as ``verify``, ``last_build`` and :func:`answered_of` do."""
    source = open_to_read(path)
    return answered_of(subject_from(source), judge, source.read("second_verdicts") if judge else None)


def answered_of(subject: Subject, judge: str | None = None, second: pa.Table | None = None) -> Answered:
    """Return a subject's labels and answers. ``judge``: whose verdicts decide wherever people's do not; ``second``: the
    table ``second_verdicts``. Raises ``SettingsError`` where no verdict of the judge is kept, and as
    :class:`Answered`."""
    verdicts = verdicts_of(judge, subject.files.read("verdicts"), second) if judge else None
    return Answered((part.labelled() for part in subject.chunks()), judge, verdicts)


def _right(dataset: Dataset, labeler: ReaderInfo, positions: np.ndarray, verdicts: pa.Table | None) -> np.ndarray:
    """Return whether a labeler answers each passage correctly, at least and at most: bool, shape (2, passages).
    ``verdicts``: those that decide; None: those in force."""
    replies = dataset.replies(positions, [labeler])
    correct = replies.valid if verdicts is None else accepted_answers(replies.distinct, verdicts)
    right = correct[replies.index[:, 0]]
    is_asked = dataset.asked(positions, labeler)
    return np.stack([right, right | ~is_asked])


def verdicts_of(judge: str, verdicts: pa.Table, second: pa.Table | None) -> pa.Table:
    """Return the verdicts of people, then all of a judge: the first one on an answer counts."""
    columns = ["question_id", "answer_key", "correct", "judge"]
    of_people = pc.fill_null(pc.equal(verdicts["basis"], "review"), False)
    tables = [verdicts.filter(pc.invert(of_people)), *([] if second is None else [second])]
    by_judges = pa.concat_tables([table.select(columns) for table in tables], promote_options="default")
    of_judge = by_judges.filter(pc.equal(by_judges["judge"], judge))
    if not len(of_judge):
        names = ", ".join(sorted(filter(None, by_judges["judge"].unique().to_pylist()))) or "none"
        raise SettingsError(
            f"No verdicts of the judge {judge!r} on these answers are kept here. Kept: {names}. To ask another judge: "
            "quit release rejudge"
        )
    return pa.concat_tables([verdicts.filter(of_people).select(columns), of_judge], promote_options="default")


def _flags(label_2: np.ndarray) -> np.ndarray:
    """Return whether each item counts, bool, shape (counts, items). ``label_2``: which have it now, at least and at
    most, shape (3, items)."""
    return np.stack([count(*label_2) for count in _COUNTS.values()])


_COUNTS: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]] = {
    "count": lambda now, low, high: np.ones_like(now),
    "label_2": lambda now, low, high: now,
    "then_least": lambda now, low, high: low,
    "then_most": lambda now, low, high: high,
    "to_1_least": lambda now, low, high: now & ~high,
    "to_1_most": lambda now, low, high: now & ~low,
    "to_2_least": lambda now, low, high: ~now & low,
    "to_2_most": lambda now, low, high: ~now & high,
}
"""Count of :class:`Figures` -> which items it counts, by whether they have label 2 now, then at least and at most."""

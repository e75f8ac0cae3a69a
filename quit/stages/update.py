"""Label update (paper, section 3.2.4): people's verdicts over the judge's, and the leakage filter once more.

Valid answers change where people decided; the filter then runs again on every question, train too, with its valid
answers. Questions that leak now, are flagged or have no valid answer left leave the dataset; labels go from 2 to 1 and
from 1 to 2. Each change is a row of ``changes`` with the reviews that caused it. No reader and no judge is asked. The
same tables and decisions give the same rows; without decisions the update gives the label stage's tables, less the
questions that leak.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quit import contracts
from quit.common.cache import leak_store
from quit.common.columns import is_in, plain
from quit.common.rows import Row, grouped, tuples
from quit.stages.label import ValidAnswer, labels_of, valid_answers_of, valid_answers_table
from quit.stages.labelling.answers import Answers, accepted_answers, answers_of, check_order
from quit.stages.labelling.rulings import Ruling, SettledDecisions, settled_decisions, with_rulings
from quit.stages.stage import Context, LazyTable, Tables, stage
from quit.text.answers import answer_key

if TYPE_CHECKING:
    from quit.stages.leaks.find import Finding, LeakItem

LeakCheck = Callable[[Sequence["LeakItem"]], list[list[list["Finding"]]]]
"""The findings of each hint of each item: :func:`quit.stages.leaks.find.find_leaks_of` with its models."""


@dataclass(frozen=True)
class LabelTables:
    """Tables of the label stage and of those before it."""

    questions: pa.Table
    ranked_hints: pa.Table
    splits: pa.Table
    verdicts: pa.Table
    labels: pa.Table
    valid_answers: pa.Table


@stage(
    "update",
    outputs=("changes", "labels", "valid_answers", "verdicts", "splits", "leak_findings", "rejects"),
    supersedes=("labels", "valid_answers", "verdicts", "splits"),
    sections=("review.splits", "review.removing_flags", "leakage"),
    models=("leak_rules", "equivalence", "encoder", "labelers"),
    overrides="leak",
    shard_factor=16,
    version=4,
)
def update_stage(
    context: Context,
    questions: pa.Table,
    ranked_hints: pa.Table,
    splits: pa.Table,
    answers: LazyTable,
    distinct_answers: LazyTable,
    verdicts: pa.Table,
    labels: LazyTable,
    valid_answers: pa.Table,
    decisions: pa.Table,
) -> Tables:
    """Apply people's verdicts to labels and valid answers."""
    from quit.stages.leaks.find import overrides_by_hint
    from quit.stages.leaks.kept import cached_leaks_of

    settings, models = context.settings, context.models
    columns = contracts.table("labels").schema.names
    before = LabelTables(questions, ranked_hints, splits, verdicts, labels(columns), valid_answers)
    settled = settled_decisions(decisions, splits, settings.review)
    overrides = overrides_by_hint(context.overrides, ranked_hints)
    by_labeler = {
        labeler.name: answers_of(labeler.name, answers, distinct_answers, settled.touched)
        for labeler in settings.labelers
    }

    # An accepted answer leaks where it is a word of a hint, not inside one: "US" does not leak in "famous".
    by_words = settings.leakage.model_copy(update={"contained": False})

    def leaks(items: Sequence[LeakItem]) -> list[list[list[Finding]]]:
        if settings.passages.is_given:  # they may contain answers
            return [[[] for _ in item.hints] for item in items]
        items = [replace(item, overrides=[overrides.get(hint) for hint in item.hint_ids]) for item in items]
        return cached_leaks_of(items, models.equivalence, models.encoder, by_words, leak_store())

    return update_labels(before, by_labeler, settled, leaks)


def update_labels(
    tables: LabelTables,
    answers: Mapping[str, Answers],
    settled: SettledDecisions,
    leaks: LeakCheck,
) -> dict[str, pa.Table]:
    """Return ``labels``, ``valid_answers``, ``verdicts``, ``splits``, ``changes``, ``leak_findings`` and ``rejects`` of
    the update.

    ``answers``: labeler name -> its answers to the passages of ``settled.touched``, in table order.
    ``leaks`` is asked about every question with its valid answers that are not gold.
    Raises ``ValueError`` when the answers of a labeler are not those to the passages.
    """
    touched = pa.array(settled.touched, pa.string())
    mask = is_in(tables.labels.column("question_id"), touched)
    passages = tables.labels.filter(mask)
    check_order(answers, passages)
    rulings = [_Rulings(replies, settled, tables.verdicts) for replies in answers.values()]
    accepted = [ruling.after for ruling in rulings]
    new = labels_of(passages, answers, accepted)
    questions = tables.questions.filter(is_in(tables.questions.column("question_id"), touched))
    old_valid = tables.valid_answers.filter(is_in(tables.valid_answers.column("question_id"), touched))
    new_valid = _with_review(valid_answers_of(questions, passages, answers, accepted), settled)
    changes = _answer_changes(old_valid, new_valid, settled)
    valid = _merged(tables.valid_answers, new_valid, touched)
    removed, findings = _removals(tables, valid, changes, settled, leaks)
    gone = pa.array(sorted(removed), pa.string())
    keep = _not_in(passages, gone)
    label_changes = _label_changes(passages, new.column("label"), rulings, keep)
    removal_changes = [
        {"question_id": question_id, "change": "question_removed", "reviews": why.reviews, "reason": why.detail}
        for question_id, why in removed.items()
    ]
    rejects = [
        {"stage": "update", "kind": "question", "question_id": name, "reason": why.reason, "detail": why.detail}
        for name, why in removed.items()
    ]
    answer_changes = [row for row in changes if row["question_id"] not in removed]
    small = contracts.table("changes").from_rows(answer_changes + removal_changes)
    return {
        "labels": _replaced(tables.labels, mask, new, gone),
        "valid_answers": valid.filter(_not_in(valid, gone)),
        "verdicts": with_rulings(tables.verdicts, settled),
        "splits": tables.splits.filter(_not_in(tables.splits, gone)),
        "changes": pa.concat_tables([small, label_changes]).sort_by(
            [(name, "ascending") for name in ("question_id", "change", "permutation", "answer")]
        ),
        "leak_findings": contracts.table("leak_findings").from_rows(findings),
        "rejects": contracts.table("rejects").from_rows(rejects),
    }


class _Rulings:
    """People's decisions on one labeler's distinct answers: which were right before, which are now (bool, shape
    (distinct answers,)), and why (row -> answer, ruling); ``index``: :attr:`Answers.index`."""

    def __init__(self, answers: Answers, settled: SettledDecisions, verdicts: pa.Table) -> None:
        self.index = answers.index
        self.before = accepted_answers(answers.distinct, verdicts)
        self.after = self.before.copy()
        self.causes: dict[int, tuple[str, Ruling]] = {}
        for row, (question, key, answer) in enumerate(tuples(answers.distinct, "question_id", "answer_key", "answer")):
            if ruling := settled.answers.get((question, key)):
                self.causes[row] = answer, ruling
                self.after[row] = ruling.decision


def _with_review(valid: pa.Table, settled: SettledDecisions) -> pa.Table:
    """Return valid answers without the gold answers that people rejected, and with every answer that they accept."""
    rejected = {identity for identity, ruling in settled.answers.items() if not ruling.decision}
    rows = [ValidAnswer(*row) for row in tuples(valid, *ValidAnswer._fields)]
    rows = [row for row in rows if row.origin != "gold" or row.identity not in rejected]
    present = {row.identity for row in rows}
    rows += [
        ValidAnswer(question, ruling.answer, key, "review", 0)
        for (question, key), ruling in sorted(settled.answers.items())
        if ruling.decision and (question, key) not in present
    ]
    rows.sort(key=lambda row: row.question_id)  # stable: what people add comes after the question's other answers
    return valid_answers_table(rows)


def _answer_changes(old: pa.Table, new: pa.Table, settled: SettledDecisions) -> list[Row]:
    """Return the rows of ``changes`` for valid answers that came or went."""
    names = ("question_id", "answer", "answer_key")
    before, after = ({row[:2]: row[2] for row in tuples(table, *names)} for table in (old, new))
    changes = []
    for change, these, others in (("answer_added", after, before), ("answer_removed", before, after)):
        for (question, answer), key in these.items():
            if (question, answer) not in others:
                ruling = settled.answers.get((question, key))
                reason = ruling.about(answer) if ruling else "follows from another answer's review"
                row = {"question_id": question, "change": change, "answer": answer, "answer_key": key, "reason": reason}
                changes.append(row | {"reviews": ruling.reviews if ruling else []})
    return changes


@dataclass(frozen=True)
class _Removal:
    reason: str
    detail: str
    reviews: list[str]


def _removals(
    tables: LabelTables,
    valid: pa.Table,
    changes: Sequence[Row],
    settled: SettledDecisions,
    leaks: LeakCheck,
) -> tuple[dict[str, _Removal], list[Row]]:
    """Return the questions that leave, sorted, and the leaks found. ``valid``: the valid answers of all questions.

    Leakage is looked for in the hints that make passages. Gold answers passed the same filter before; every other valid
    answer is checked.
    """
    removed: dict[str, _Removal] = {}
    for (question, flag), ruling in sorted(settled.flags.items()):
        removed.setdefault(question, _Removal(f"flagged_{flag}", f"flagged {flag} {ruling.votes}", ruling.reviews))
    causes: dict[str, set[str]] = {}
    for row in changes:
        causes.setdefault(row["question_id"], set()).update(row["reviews"])
    answered = {*valid.column("question_id").to_pylist()}
    for question in sorted(causes.keys() - answered - removed.keys()):
        removed[question] = _Removal("no_valid_answer", "people rejected every valid answer", sorted(causes[question]))
    findings: list[Row] = []
    labelled = {*tables.splits.column("question_id").to_pylist()} - removed.keys()
    for question, hint, leak in _leaks(tables, _accepted(valid, labelled), leaks):
        findings.append({"hint_id": hint, "question_id": question, **asdict(leak)})
        if leak.overridden:
            continue  # a person has said that it is none
        accepted = settled.answers.get((question, answer_key(leak.answer)))
        reviews = accepted.reviews if accepted else sorted(causes.get(question, ()))
        removed.setdefault(question, _Removal("answer_leak", f"{hint}: {leak.words}", reviews))
    return dict(sorted(removed.items())), findings


def _accepted(valid: pa.Table, among: Set[str]) -> dict[str, list[str]]:
    """Return question id -> its valid answers that are not gold, of the questions ``among`` that have any."""
    others = tuples(valid.filter(pc.not_equal(valid.column("origin"), "gold")), "question_id", "answer")
    return grouped((question, answer) for question, answer in others if question in among)


def _leaks(
    tables: LabelTables, check: Mapping[str, Sequence[str]], leaks: LeakCheck
) -> Iterable[tuple[str, str, Finding]]:
    """Yield (question id, hint id, finding) for the answers to ``check``, question by question."""
    from quit.stages.leaks.find import leak_items

    rows = tables.ranked_hints.filter(tables.ranked_hints.column("selected"))
    texts = dict(tuples(tables.questions, "question_id", "question"))
    items = leak_items(((question, texts[question], answers) for question, answers in check.items()), rows, {})
    for question, item, findings in zip(check, items, leaks(items), strict=True):
        for hint, these in zip(item.hint_ids, findings, strict=True):
            for leak in these:
                yield question, hint, leak


def _label_changes(
    passages: pa.Table,
    label: pa.ChunkedArray,
    rulings: Sequence[_Rulings],
    keep: pa.ChunkedArray,
) -> pa.Table:
    """Return the rows of ``changes`` for labels, each with the first labeler's answer whose verdict changed
    likewise."""
    schema = contracts.table("changes").schema
    step = pc.subtract(label, passages.column("label")).to_numpy()
    changed = pc.and_(pc.not_equal(passages.column("label"), label), keep)
    rows = np.flatnonzero(changed.to_numpy())
    pieces = []
    for of_labeler in rulings:
        here = (of_labeler.after.astype(np.int16) - of_labeler.before)[of_labeler.index[rows]] == step[rows]
        explained, rows = rows[here], rows[~here]
        if not len(explained):
            continue
        used, codes = np.unique(of_labeler.index[explained], return_inverse=True)
        causes = pa.Table.from_pylist(
            [
                {"answer": answer, "answer_key": ruling.key, "reviews": ruling.reviews, "reason": ruling.about(answer)}
                for answer, ruling in (of_labeler.causes[row] for row in used.tolist())
            ]
        ).take(pa.array(codes))
        chosen = pa.array(explained)
        columns = {
            "question_id": plain(passages.column("question_id").take(chosen)),
            "change": pa.repeat("label", len(chosen)),
            "permutation": plain(passages.column("permutation").take(chosen)),
            "before": passages.column("label").take(chosen),
            "after": label.take(chosen),
            **dict(zip(causes.column_names, causes.columns)),
        }
        pieces.append(contracts.table("changes").from_columns(columns))
    return pa.concat_tables(pieces) if pieces else schema.empty_table()


def _not_in(table: pa.Table, gone: pa.Array) -> pa.ChunkedArray:
    return pc.invert(is_in(table.column("question_id"), gone))


def _replaced(old: pa.Table, mask: pa.ChunkedArray, new: pa.Table, gone: pa.Array) -> pa.Table:
    """Return ``old`` with the rows under ``mask`` replaced by those of ``new``, in order, without the questions that
    left."""
    both = pa.concat_tables([old, new.cast(old.schema)])
    order = np.arange(len(old), dtype=np.int32)
    order[np.flatnonzero(mask.to_numpy())] = len(old) + np.arange(len(new))
    order = order[_not_in(old, gone).to_numpy()]
    if not len(order):
        return old.schema.empty_table()
    ends = np.flatnonzero(np.diff(order, append=-1) != 1) + 1  # of runs of consecutive rows, which need no copy
    starts = np.concatenate([[0], ends[:-1]])
    runs = zip(order[starts].tolist(), (ends - starts).tolist())
    return pa.concat_tables([both.slice(first, length) for first, length in runs])


def _merged(old: pa.Table, new: pa.Table, touched: pa.Array) -> pa.Table:
    """Return the valid answers of all questions, in question order, those of the touched ones from ``new``."""
    if not len(touched):
        return old
    both = pa.concat_tables([old.filter(_not_in(old, touched)), new])
    places = pa.array(np.arange(len(both)))
    order = both.select(["question_id"]).append_column("place", places)
    return both.take(order.sort_by([("question_id", "ascending"), ("place", "ascending")]).column("place"))

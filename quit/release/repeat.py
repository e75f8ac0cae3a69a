"""How repeatable a judge is: a sample of its verdicts, asked for again (``quit release rejudge --repeat``).

A label *hinges* on an answer if another verdict on that answer alone changes it (docs/research/validity.md).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quit.common.ids import content_hash
from quit.common.rows import tuples
from quit.dataset.release import Release
from quit.engine.workspace import Workspace
from quit.errors import SettingsError, shell_word
from quit.evaluate.proportions import wilson
from quit.release.gates import Subject
from quit.release.rejudge import ask, judge_folder, judge_of
from quit.release.view import open_to_read
from quit.release.whatif import subject_from, verdicts_of
from quit.render.table import Table, interval, percent
from quit.settings import Settings
from quit.stages.judge import DistinctAnswers
from quit.stages.labelling.answers import accepted_answers, matching_rows


def repeat(place: str | Path, name: str, settings: Settings, number: int) -> dict[str, Any]:
    """Have a judge judge again ``number`` answers, drawn at random from those that it has judged here.

    Each is a new request (its sample is 1), whose reply is kept, so a killed run goes on. Returns ``judge``,
    ``producer``, ``judged`` and ``sampled`` (answers), and ``shares`` of verdicts and of labels ``of`` which so many
    change: ``changed`` (verdicts of the sample), ``estimate``, ``low``, ``high`` (95%; None: no label hinges on one).
    Raises ``SettingsError`` where this judge's verdicts are not kept here, and as
    :func:`quit.release.rejudge.rejudge`.
    """
    source = open_to_read(place)
    models, judge = judge_of(settings, name)
    subject, second = subject_from(source), source.read("second_verdicts")
    before = _verdicts_by(source, second, name, judge.identity)
    if not len(before):
        raise SettingsError(
            f"{place} has no verdicts of {name} ({judge.identity}) to compare with. Judge first: quit release rejudge "
            f"{shell_word(place)} --judge {shell_word(name)}"
        )
    random = np.random.default_rng(int(content_hash("repeat", source.judged, judge.identity, number), 16))
    places = np.sort(random.choice(len(before), min(number, len(before)), replace=False))
    sample = before.take(pa.array(places))
    answers = DistinctAnswers.judged(source.read("questions"), sample)
    rows = ask(judge_folder(source, name), answers, judge, models, settings, sample=1)
    pairs = [*zip(sample["correct"].to_pylist(), (row["correct"] for row in rows), strict=True)]  # both by key
    changed = np.array([first is not second for first, second in pairs])
    flipped = np.array([bool(first) is not bool(second) for first, second in pairs])
    hinges, passages = hinging_labels(subject, before, verdicts_of(name, source.read("verdicts"), second))
    every = np.ones(len(places))
    shares = [
        {"of": "verdicts", "changed": int(changed.sum()), **_share(changed, every, 1.0)},
        {"of": "labels", "changed": int(flipped.sum()), **_share(flipped, hinges[places], hinges.sum() / passages)},
    ]
    facts = {"judge": name, "producer": judge.identity, "judged": len(before), "sampled": len(places)}
    return {**facts, "shares": shares}


def _verdicts_by(source: Release | Workspace, second: pa.Table, name: str, producer: str) -> pa.Table:
    """Return the verdicts of a judge's model on answers that people have not decided, each once."""
    verdicts = source.read("verdicts")
    of_people = {*tuples(verdicts.filter(pc.equal(verdicts["basis"], "review")), "question_id", "answer_key")}
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for table in (verdicts, second):
        own = pc.and_(pc.equal(table["producer"], producer), pc.equal(table["basis"], "model"))
        for row in table.filter(pc.and_(own, pc.equal(table["judge"], name))).to_pylist():
            rows.setdefault((row["question_id"], row["answer_key"]), row)
    return pa.Table.from_pylist([rows[key] for key in sorted(rows) if key not in of_people], verdicts.schema)


def hinging_labels(subject: Subject, answers: pa.Table, verdicts: pa.Table) -> tuple[np.ndarray, int]:
    """Return how many labels hinge on each of ``answers``, int64, shape (answers,), and how many passages there are.

    A label 2 hinges on the answer of the labelers that are right, if they all give the same; a label 1 on each answer.
    """
    counts, passages = np.zeros(len(answers) + 1, np.int64), 0  # the last: answers that are not among them
    for part in subject.chunks():
        dataset, answer_rows, right = part.labelled(), [], []
        every = np.arange(len(dataset.ids))
        for labeler in dataset.labelers:
            replies, is_asked = dataset.replies(every, [labeler]), dataset.asked(every, labeler)
            index = replies.index[:, 0]
            answer_rows.append(np.where(is_asked, matching_rows(replies.distinct, answers, "answer_key")[index], -1))
            right.append(is_asked & accepted_answers(replies.distinct, verdicts)[index])
        rows, is_right = np.stack(answer_rows), np.stack(right)
        fully = is_right.any(axis=0)
        first, last = np.where(is_right, rows, len(answers)).min(axis=0), np.where(is_right, rows, -1).max(axis=0)
        np.add.at(counts, first[fully & (first == last)], 1)
        for place, row in enumerate(rows):
            np.add.at(counts, row[~fully & (row != rows[:place]).all(axis=0)], 1)
        passages += fully.size
    return counts[:-1], passages


def _share(hits: np.ndarray, weights: np.ndarray, scale: float) -> dict[str, float | None]:
    """Return ``estimate``, ``low`` and ``high`` of ``scale`` times the weighted share of hits: Wilson's interval for
    Kish's effective sample size (Survey Sampling, 1965)."""
    if not weights.any():
        return dict.fromkeys(("estimate", "low", "high"))
    size, share = np.array([weights.sum() ** 2 / (weights @ weights)]), (weights @ hits) / weights.sum()
    (low,), (high,) = wilson(share * size, size, None)
    return {name: float(min(1.0, scale * value)) for name, value in (("estimate", share), ("low", low), ("high", high))}


def repeat_table(facts: dict[str, Any]) -> Table:
    """Return what :func:`repeat` returns as a table."""
    rows = [(row["of"], row["changed"], percent(row["estimate"]), interval(row)) for row in facts["shares"]]
    note = (
        f"{facts['sampled']:,} of {facts['judged']:,} answers that {facts['judge']} had judged. Verdicts: share that "
        "differs. Labels: share that differs, if each answer is judged again on its own. Interval: 95%."
    )
    return Table("Judged again", ("", "verdicts changed", "share", "interval"), rows, (0,), note)

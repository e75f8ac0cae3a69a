"""Which answers people review, and in what order: the questions of dev and test with every distinct generated answer.

Order: questions with an unjudged answer, then the most informative. An answer's passages are at stake as far as its
verdict is uncertain: wholly where judges disagree or none could be read, less the farther its probability is from the
threshold, and a little where it is certain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from quit.common.arithmetic import sum_in_order
from quit.common.ids import draw
from quit.common.rows import Row, first_by, grouped, tuples
from quit.engine.workspace import Workspace
from quit.settings import Review
from quit.text.answers import answer_key

NEAR_THRESHOLD = 0.15
"""Distance from the judge's threshold within which a verdict counts as uncertain."""
CERTAIN_WEIGHT = 0.05
"""Weight of the passages of a certain verdict; those of an uncertain one have 1."""
Audit = Mapping[str, Set[str]]
"""Question id -> the keys of the answers that the audit needs."""
_Second = dict[tuple[str, str], list[tuple[bool | None, float | None]]]
"""Question id and answer's key -> verdict and probability of each other judge."""
_ANSWERS = """
    WITH counted AS (
        SELECT a.question_id, d.answer_key, d.answer, a.reader, count(*) AS given, a.permutation
        FROM answers a SEMI JOIN asked USING (question_id)
        JOIN distinct_answers d USING (question_id, reader, number)
        WHERE d.answer_key <> '' AND d.answer <> 'NO ANSWER'
        GROUP BY ALL
    ), forms AS (
        SELECT question_id, answer_key, list(answer ORDER BY given DESC, answer) AS forms
        FROM (SELECT question_id, answer_key, answer, sum(given) AS given FROM counted GROUP BY ALL)
        GROUP BY ALL
    ), totals AS (
        SELECT question_id, answer_key, count(DISTINCT permutation) AS passages,
               list(DISTINCT reader ORDER BY reader) AS readers
        FROM counted GROUP BY ALL
    )
    SELECT t.*, f.forms, v.correct, v.probability FROM totals t JOIN forms f USING (question_id, answer_key)
    LEFT JOIN the_verdicts v USING (question_id, answer_key)
    ORDER BY question_id, passages DESC, answer_key
"""
"""Each distinct answer to the questions ``asked``: how many passages readers gave it from, their names, its forms and
the judge's verdict."""


@dataclass(frozen=True, slots=True)
class ReviewAnswer:
    """One distinct answer. ``passages``: how many passages some reader gave it from; ``forms``: as
    written, most frequent first; ``verdict``: the judge's (None: unreadable or never asked); ``second``: that
    of another judge, if possible of one that disagrees."""

    key: str
    forms: tuple[str, ...]
    passages: int
    readers: tuple[str, ...]
    verdict: bool | None
    probability: float | None
    gold: bool
    second: bool | None = None
    second_probability: float | None = None


@dataclass(frozen=True, slots=True)
class ReviewItem:
    """One question to review. ``stake``: passages in doubt; orders the queue. ``blind``: annotators see no verdict, and
    its answers have none. ``audited``: passages of it are drawn for the audit, which annotators are not told."""

    question_id: str
    split: str
    question: str
    gold_answers: tuple[str, ...]
    hints: tuple[str, ...]
    answers: tuple[ReviewAnswer, ...]
    stake: float = field(default=0.0, compare=False)
    blind: bool = False
    audited: bool = field(default=False, compare=False)

    @property
    def unjudged(self) -> bool:
        """Whether an answer has no verdict."""
        return any(answer.verdict is None for answer in self.answers)


def review_items(
    workspace: Workspace, settings: Review, threshold: float, controls: Sequence[str] = (), audit: Audit | None = None
) -> list[ReviewItem]:
    """Return what people are asked: first what the audit needs, then what is unjudged, then the most informative.

    ``threshold``: the judge's. ``controls``: questions of any split that are asked too. ``audit``: see
    :func:`quit.review.audit.draw_audit`; a question that is asked for it alone has only its gold answers and those that
    the audit needs. Answers, verdicts and splits are those before any label update, so that the queue does not depend
    on people's verdicts.
    """
    audit = audit or {}
    with workspace.connect() as connection:
        connection.register("the_splits", workspace.read("splits", runs=["split"]))
        connection.register("the_verdicts", workspace.read("verdicts", runs=["judge"]))
        connection.register("controls", pa.table({"question_id": pa.array([*controls, *audit], pa.string())}))
        splits = ", ".join(f"'{split}'" for split in settings.splits)
        connection.execute(
            f"""CREATE TEMP TABLE asked AS SELECT question_id, split FROM the_splits
                WHERE split IN ({splits}) OR question_id IN (SELECT question_id FROM controls)"""
        )
        answers = connection.sql(_ANSWERS).to_arrow_table()
        questions = connection.sql(
            "SELECT question_id, split, question, answers FROM asked JOIN questions USING (question_id) "
            "ORDER BY question_id"
        ).to_arrow_table()
        hints = connection.sql(
            """SELECT question_id, list(hint ORDER BY rank) AS hints FROM ranked_hints
               SEMI JOIN asked USING (question_id) WHERE selected GROUP BY question_id"""
        ).to_arrow_table()
    second = _second_verdicts(workspace)
    hints_of = dict(tuples(hints, "question_id", "hints"))
    answers_of = grouped((row["question_id"], row) for row in answers.to_pylist())
    items = [
        _item(row, hints_of.get(row["question_id"], []), answers_of.get(row["question_id"], []), second, threshold)
        for row in questions.to_pylist()
    ]
    for place, item in enumerate(items):
        if item.question_id in audit:
            whole = item.split in settings.splits or item.question_id in controls
            needed = (each for each in item.answers if whole or each.gold or each.key in audit[item.question_id])
            items[place] = replace(item, answers=tuple(needed), audited=True)
    return sorted(items, key=lambda item: (not item.audited, not item.unjudged, -item.stake, item.question_id))


def with_blind(items: Sequence[ReviewItem], share: float, seed: str) -> list[ReviewItem]:
    """Return the items in their order; those that are drawn lose every verdict and are ``blind``.

    The draw is a keyed hash of the question's id, whether or not it is a control question: a question that is blind at
    one share is blind at every larger one, and being blind says nothing about being a control question.
    """
    hidden: dict[str, Any] = {"verdict": None, "probability": None, "second": None, "second_probability": None}
    return [
        replace(item, answers=tuple(replace(answer, **hidden) for answer in item.answers), blind=True)
        if draw(f"blind/{item.question_id}", seed) < share
        else item
        for item in items
    ]


def _second_verdicts(workspace: Workspace) -> _Second:
    """Return the verdicts of other judges, where the workspace has any."""
    rows = workspace.read("second_verdicts")
    verdicts = tuples(rows, "question_id", "answer_key", "correct", "probability")
    return grouped(((identity, key), (correct, probability)) for identity, key, correct, probability in verdicts)


def _item(question: Row, hints: list[str], rows: list[Row], second: _Second, threshold: float) -> ReviewItem:
    identity = question["question_id"]
    gold = first_by((answer_key(form), form) for form in question["answers"])
    answers = []
    for row in rows:
        key = row["answer_key"]
        others = second.get((identity, key), [(None, None)])
        other = next((verdict for verdict in others if verdict[0] not in (None, row["correct"])), others[0])
        # DuckDB's list() keeps duplicates of a form that several readers gave; the set of forms is what people see.
        forms = tuple(dict.fromkeys(row["forms"]))
        answers.append(
            ReviewAnswer(
                key,
                forms,
                row["passages"],
                tuple(row["readers"]),
                row["correct"],
                row["probability"],
                key in gold,
                *other,
            )
        )
    keys = {answer.key for answer in answers}
    # Gold answers that no reader gave are shown too, so that a person can reject a wrong one.
    answers += [
        ReviewAnswer(key, (form,), 0, (), True, None, True) for key, form in gold.items() if key and key not in keys
    ]
    answers.sort(key=lambda answer: (not answer.gold, -answer.passages, answer.key))
    stake = sum_in_order(_stake(answer, threshold) for answer in answers)
    return ReviewItem(
        identity,
        question["split"],
        question["question"],
        tuple(question["answers"]),
        tuple(hints),
        tuple(answers),
        stake,
    )


def _stake(answer: ReviewAnswer, threshold: float) -> float:
    if answer.gold:
        doubt = 0.0
    elif answer.verdict is None or (answer.second is not None and answer.second is not answer.verdict):
        doubt = 1.0
    elif answer.probability is not None:
        doubt = max(0.0, 1.0 - abs(answer.probability - threshold) / NEAR_THRESHOLD)
    else:
        doubt = 0.0
    return answer.passages * max(doubt, CERTAIN_WEIGHT)

"""Examples for the report, by fixed rules: one passage with its answers, questions that hints answer best and worst,
those that people changed, those left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, islice
from typing import Any, TypedDict

import duckdb

from quit.common.rows import Row, grouped
from quit.engine.reading import TableReader
from quit.render.table import plain_name
from quit.status.story import Story, stories, story
from quit.text.answers import answer_key

_ANSWERS = 8  # listed per example, those from most passages first
_SHARES = """
    SELECT s.question_id, avg((l.label = 2)::INTEGER) AS share FROM splits s JOIN labels l USING (question_id)
    WHERE NOT coalesce(s.parametric, s.split = 'train') GROUP BY 1
"""
_EXAMPLES = 3  # of each kind
KINDS = (
    (
        "answered",
        "Answered from most passages",
        "Of the questions that no reader answers without hints, those with the largest share of label 2.",
        f"SELECT question_id FROM ({_SHARES}) ORDER BY share DESC, question_id LIMIT $examples",
    ),
    (
        "unanswered",
        "Answered from fewest passages",
        "Of the same questions, those with the smallest share of label 2.",
        f"SELECT question_id FROM ({_SHARES}) ORDER BY share, question_id LIMIT $examples",
    ),
    (
        "changed",
        "Changed by people",
        "Questions where people's verdicts changed most labels.",
        """SELECT question_id FROM changes WHERE change = 'label' GROUP BY 1
           ORDER BY count(*) DESC, question_id LIMIT $examples""",
    ),
    (
        "left_out",
        "Left out",
        "Questions that were collected and left out later: the first one of each reason.",
        """SELECT min(question_id) AS question_id FROM rejects JOIN questions USING (question_id)
           WHERE kind = 'question' GROUP BY stage, reason ORDER BY stage, reason LIMIT $examples""",
    ),
)
"""Kind, heading, rule in words, and the rule."""

_PASSAGE = """
    WITH shares AS (
        SELECT s.question_id, s.split = 'test' AS test, avg((l.label = 2)::INTEGER) AS share
        FROM splits s JOIN labels l USING (question_id) GROUP BY ALL
    ), mixed AS (FROM shares WHERE share > 0 AND share < 1)
    SELECT question_id FROM mixed
    ORDER BY test DESC, abs(share - (SELECT median(share) FROM mixed AS m WHERE m.test = mixed.test)), question_id
    LIMIT 1
"""


class ExamplePassage(TypedDict):
    """A passage; ``answers``: name, role, answer and correct of each reader."""

    question_id: str
    question: str
    gold: list[str]
    split: str
    text: str
    label: int
    answers: list[Row]


class ExampleHint(TypedDict):
    """A hint; ``leaks``: the words that give an answer away."""

    hint: str
    convergence: float | None
    leaks: list[str]


class Example(TypedDict):
    """A question; ``passages``: labelled ones, of these ``fully`` relevant; ``answers``: answer, correct and passages,
    those from most passages first, and how many more there are; ``reasons``: why it was left out; ``changes``: what
    people's verdicts changed, both in words."""

    question_id: str
    question: str
    gold: list[str]
    split: str | None
    type: str | None
    difficulty: str | None
    hints: list[ExampleHint]
    passages: int
    fully: int
    answers: list[Row]
    more_answers: int
    reasons: list[str]
    changes: list[str]


class ExampleKind(TypedDict):
    """Questions of one kind; ``rule``: which they are, in words."""

    kind: str
    title: str
    rule: str
    questions: list[Example]


def example_passage(
    workspace: TableReader, connection: duckdb.DuckDBPyConnection, readers: Sequence[Mapping[str, str]]
) -> ExamplePassage | None:
    """Return one passage with its text and what each reader answered, or None before there are labels of both kinds.

    The question has passages of both labels and, of such test questions (of all, where test has none), the median
    share of label 2; the passage is the first of most hints. ``readers``: name and role, in the order wanted.
    """
    row = connection.execute(_PASSAGE).fetchone()
    if row is None:
        return None
    question: Mapping[str, Any] = story(workspace, row[0])
    passage = max(question["passages"], key=lambda row: len(row["permutation"]))  # the first such: by permutation
    verdicts = {answer_key(row["answer"]): row["correct"] for row in question["verdicts"]}
    return {
        "question_id": question["question_id"],
        "question": question["question"]["question"],
        "gold": question["question"]["answers"],
        "split": question["split"]["split"],
        "text": passage["text"],
        "label": passage["label"],
        "answers": [
            {**reader, "answer": answer, "correct": verdicts.get(answer_key(answer))}
            for reader in readers
            if (answer := passage["answers"].get(reader["name"])) is not None
        ],
    }


def examples(workspace: TableReader, connection: duckdb.DuckDBPyConnection) -> list[ExampleKind]:
    """Return the kinds that have any questions; no question appears twice."""
    questions_of: dict[str, list[str]] = {}
    earlier: set[str] = set()
    for kind, _, _, sql in KINDS:
        # A question may be taken by an earlier kind: ask for as many more.
        rows = connection.execute(sql, {"examples": _EXAMPLES + len(earlier)}).fetchall()
        questions_of[kind] = [question_id for (question_id,) in rows if question_id not in earlier][:_EXAMPLES]
        earlier.update(questions_of[kind])
    lives = stories(workspace, list(chain(*questions_of.values())))
    return [
        {"kind": kind, "title": title, "rule": rule, "questions": [example(life) for life in islice(lives, number)]}
        for kind, title, rule, _ in KINDS
        if (number := len(questions_of[kind]))
    ]


def example(question: Story, max_answers: int = _ANSWERS) -> Example:
    """Return what is shown of a question; ``max_answers``: answers and changes at most."""
    record, split, description = (question[name] or {} for name in ("question", "split", "description"))
    verdicts = [row for row in question["verdicts"] if row["passages"]]
    labels = [passage["label"] for passage in question["passages"] if passage["label"] is not None]
    spans = grouped((leak["hint_id"], leak["span"]) for leak in question["leak_findings"])
    return {
        "question_id": question["question_id"],
        "question": record.get("question", ""),
        "gold": record.get("answers", []),
        "split": split.get("split"),
        "type": description.get("coarse"),
        "difficulty": description.get("difficulty_bin"),
        "hints": [
            {"hint": hint["hint"], "convergence": hint["convergence"], "leaks": spans.get(hint["hint_id"], [])}
            for hint in question["hints"] if hint["selected"] or not question["passages"]
        ],
        "passages": len(labels),
        "fully": labels.count(2),
        "answers": [{name: row[name] for name in ("answer", "correct", "passages")} for row in verdicts[:max_answers]],
        "more_answers": max(0, len(verdicts) - max_answers),
        "reasons": list(dict.fromkeys(
            f"{row['stage']}: {plain_name(row['reason'])} ({row['detail']})"
            for row in question["rejects"] if row["kind"] == "question"
        )),
        "changes": list(dict.fromkeys(row["reason"] for row in question["changes"] if row["reviews"]))[:max_answers],
    }  # fmt: skip

"""Examples for the report, by fixed rules: one passage with its answers, questions that hints answer best and worst,
those that people changed, those left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import duckdb

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


def example_passage(
    workspace: TableReader, connection: duckdb.DuckDBPyConnection, readers: Sequence[Mapping[str, str]]
) -> dict[str, Any] | None:
    """Return one passage with its text and what each reader answered, or None before there are labels of both kinds.

    The question has passages of both labels and, of such test questions (of all, where test has none), the median
    share of label 2; the passage is the first of most hints. ``readers``: name and role, in the order
    wanted.
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


def examples(workspace: TableReader, connection: duckdb.DuckDBPyConnection) -> list[dict[str, Any]]:
    """Return ``kind, title, rule, questions`` for each kind that has any; no question appears twice."""
    kinds: list[dict[str, Any]] = []
    earlier: set[str] = set()
    for kind, title, rule, sql in KINDS:
        # A question may be taken by an earlier kind: ask for as many more.
        enough = _EXAMPLES + len(earlier)
        ids = [row[0] for row in connection.execute(sql, {"examples": enough}).fetchall()]
        fresh = [question_id for question_id in ids if question_id not in earlier][:_EXAMPLES]
        earlier |= set(fresh)
        if fresh:
            kinds.append({"kind": kind, "title": title, "rule": rule, "questions": fresh})
    lives = stories(workspace, [question_id for kind in kinds for question_id in kind["questions"]])
    return [{**kind, "questions": [example(next(lives), _ANSWERS) for _ in kind["questions"]]} for kind in kinds]


def example(question: Story, max_answers: int) -> dict[str, Any]:
    """Return what is shown of one question; ``question``: its story; ``max_answers``: answers at most, those from most
    passages first."""
    passages, record = question["passages"], question["question"] or {}
    readers: dict[str, set[str]] = {}
    for passage in passages:
        for reader, answer in passage["answers"].items():
            readers.setdefault(answer_key(answer), set()).add(reader)
    verdicts = [row for row in question["verdicts"] if row["passages"]]
    labels = [passage["label"] for passage in passages if passage["label"] is not None]
    return {
        "question_id": question["question_id"],
        "question": record.get("question", ""),
        "gold": record.get("answers", []),
        "split": (question["split"] or {}).get("split"),
        "parametric": (question["split"] or {}).get("parametric"),
        "type": (question["description"] or {}).get("coarse"),
        "difficulty": (question["description"] or {}).get("difficulty_bin"),
        "hints": [
            {"hint": hint["hint"], "convergence": hint["convergence"], "selected": hint["selected"],
             "leaks": [leak["span"] for leak in question["leak_findings"] if leak["hint_id"] == hint["hint_id"]]}
            for hint in question["hints"] if hint["selected"] or not passages
        ],
        "passages": len(labels),
        "fully": labels.count(2),
        "answers": [
            {"answer": row["answer"], "correct": row["correct"], "probability": row["probability"],
             "basis": row["basis"],
             "passages": row["passages"], "readers": sorted(readers.get(answer_key(row["answer"]), ()))}
            for row in verdicts[:max_answers]
        ],
        "readers": len({reader for passage in passages for reader in passage["answers"]}),
        "more_answers": max(0, len(verdicts) - max_answers),
        "reasons": list(dict.fromkeys(
            f"{row['stage']}: {plain_name(row['reason'])} ({row['detail']})"
            for row in question["rejects"] if row["kind"] == "question"
        )),
        "changes": list(dict.fromkeys(row["reason"] for row in question["changes"] if row["reviews"]))[:max_answers],
    }  # fmt: skip

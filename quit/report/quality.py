"""What somebody must know before comparing scores: labels by split and the bounds that follow, agreement of readers,
answers without hints, answers shared by splits, leaks by question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import duckdb

from quit.evaluate.labels import (
    Patterns,
    labels_by_split,
    of_readers,
    reader_agreement,
    shared_answers,
)


def split_figures(connection: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    """Return ``labels`` (a row for each split with questions, then ``all``) and ``shared`` (a row for every two
    splits), as :mod:`quit.evaluate.labels` counts them."""
    splits = connection.sql("SELECT question_id, split FROM splits").to_arrow_table()
    questions = connection.sql("SELECT question_id, answers FROM questions ORDER BY question_id").to_arrow_table()
    labels = connection.sql("SELECT question_id, label FROM labels").to_arrow_reader()
    by_split = [
        {**asdict(row), "without_label_2": row.without_label_2, "bound": row.bound, "share": row.share}
        for row in labels_by_split(splits, labels)
    ]
    rows = [asdict(row) for row in shared_answers(splits, questions)]
    return {"labels": by_split, "shared": rows}


def agreement_figures(readers: Sequence[Mapping[str, str]], patterns: Patterns) -> dict[str, Any]:
    """Return ``all`` and ``labelers``: what :func:`quit.evaluate.labels.reader_agreement` says, and ``right``: passages
    by the number of readers that answer correctly, from none to all (None where not all readers were asked about every
    passage). None for fewer than two readers with answers.

    ``readers``: name and role of those with answers; ``patterns``: of these, in their order.
    """
    names = [reader["name"] for reader in readers]
    labelers = {reader["name"] for reader in readers if reader["role"] == "labeler"}
    if len(names) < 2 or not patterns:
        return {"all": None, "labelers": None}
    places = [position for position, name in enumerate(names) if name in labelers]
    of_labelers = of_readers(patterns, places)
    return {
        "all": _agreement(names, patterns),
        "labelers": _agreement([names[position] for position in places], of_labelers) if len(places) > 1 else None,
    }


def _agreement(names: Sequence[str], patterns: Patterns) -> dict[str, Any]:
    agreement = reader_agreement(names, patterns)
    right = [0] * (len(names) + 1)
    for (_, bits), passages in patterns.items():
        right[bits.bit_count()] += passages
    complete = len(agreement.compared) == len(names)
    return {"readers": list(names), **asdict(agreement), "right": right if complete else None}


PROBE = """
    SELECT reader, count(DISTINCT question_id) AS questions, count(*) AS answers,
           count(*) FILTER (answer = 'NO ANSWER') AS no_answer, count(*) FILTER (correct) AS correct,
           count(DISTINCT question_id) FILTER (correct) AS known
    FROM probe_answers GROUP BY 1
"""
"""Answers without hints, by reader. ``known``: questions that the reader answers correctly in any repetition."""

LEAKS = """
    WITH leaking AS (
        SELECT question_id, count(DISTINCT hint_id) AS hints, bool_and(overridden) AS overridden,
               string_agg(DISTINCT words, '; ' ORDER BY words) AS words
        FROM (SELECT *, format('“{}” gives away “{}” ({})', span, answer, replace(method, '_', ' ')) AS words
              FROM leak_findings) GROUP BY 1
    ), gone AS (
        SELECT DISTINCT question_id FROM rejects WHERE kind = 'question' AND question_id IS NOT NULL
    )
    SELECT l.question_id, q.question, l.hints AS leaking, count(h.hint_id) AS hints, l.words,
           CASE WHEN l.question_id IN (FROM gone) THEN if(l.overridden, 'left out for another reason', 'left out')
                WHEN l.overridden THEN 'kept: a person overruled it' ELSE 'kept without these hints' END AS outcome
    FROM leaking l JOIN questions q USING (question_id) LEFT JOIN hints h USING (question_id)
    GROUP BY ALL ORDER BY leaking DESC, l.question_id LIMIT $rows
"""
"""Questions with leaking hints, those with most first."""

"""What reviews changed is told apart from what the second leakage filter leaves out in any build."""

from types import SimpleNamespace

import duckdb

from quit.review.apply import change_counts
from tests.rows import table_of


def test_questions_that_the_filter_alone_left_out_are_not_counted() -> None:
    removed = {"change": "question_removed", "reason": "'Rome' gives away 'Rome'"}
    changes = [
        {**removed, "question_id": "a", "reviews": []},
        {**removed, "question_id": "b", "reviews": ["r"]},
        {"question_id": "c", "change": "answer_added", "reviews": ["s"], "reason": "'x' accepted by 1 of 1"},
    ]
    rejects = [{"question_id": name, "reason": "answer_leak"} for name in ("a", "b")]
    connection = duckdb.connect()
    for name, rows in {"changes": changes, "rejects": rejects}.items():
        connection.register(name, table_of(name, rows))
    counts = change_counts(SimpleNamespace(connect=lambda tables: connection))
    assert (counts["questions"], counts["answers_added"]) == (2, 1)
    assert counts["questions_removed"] == {"answer_leak": 1}

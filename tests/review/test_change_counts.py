"""What reviews changed is told apart from what the second leakage filter leaves out in any build."""

import duckdb

from quit.review.apply import change_counts
from tests.rows import table_of


class _Tables:
    def __init__(self, **rows: list[dict]) -> None:
        self._tables = {name: table_of(name, of) for name, of in rows.items()}

    def connect(self, tables) -> duckdb.DuckDBPyConnection:
        connection = duckdb.connect()
        for name, table in self._tables.items():
            connection.register(name, table)
        return connection


def test_questions_that_the_filter_alone_left_out_are_not_counted() -> None:
    removed = {"change": "question_removed", "reason": "'Rome' gives away 'Rome'"}
    changes = [
        {**removed, "question_id": "a", "reviews": []},
        {**removed, "question_id": "b", "reviews": ["r"]},
        {"question_id": "c", "change": "answer_added", "reviews": ["s"], "reason": "'x' accepted by 1 of 1"},
    ]
    rejects = [{"question_id": name, "reason": "answer_leak"} for name in ("a", "b")]
    counted = change_counts(_Tables(changes=changes, rejects=rejects))
    assert (counted["questions"], counted["answers_added"]) == (2, 1)
    assert counted["questions_removed"] == {"answer_leak": 1}

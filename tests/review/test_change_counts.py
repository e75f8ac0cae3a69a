"""What reviews changed is told apart from what the second leakage filter leaves out in any build."""

import duckdb

from quit import contracts
from quit.review.apply import change_counts


class _Tables:
    def __init__(self, **rows: list[dict]) -> None:
        self._tables = {name: contracts.table(name).from_rows(of) for name, of in rows.items()}

    def connect(self) -> duckdb.DuckDBPyConnection:
        connection = duckdb.connect()
        for name, table in self._tables.items():
            connection.register(name, table)
        return connection


def test_questions_that_the_filter_alone_left_out_are_not_counted() -> None:
    changes = [
        {"question_id": "a", "change": "question_removed", "reviews": [], "reason": "a#0: 'Rome' gives away 'Rome'"},
        {"question_id": "b", "change": "question_removed", "reviews": ["r"], "reason": "b#0: 'Nile' gives away 'Nile'"},
        {"question_id": "c", "change": "answer_added", "answer": "x", "answer_key": "x", "reviews": ["s"],
         "reason": "'x' accepted by 1 of 1"},
    ]  # fmt: skip
    rejects = [
        {"stage": "update", "kind": "question", "reason": "answer_leak", "detail": "", "question_id": name}
        for name in ("a", "b")
    ]
    counted = change_counts(_Tables(changes=changes, rejects=rejects))
    assert (counted["questions"], counted["answers_added"]) == (2, 1)
    assert counted["questions_removed"] == {"answer_leak": 1}

"""Rows of questions against a filter of the whole table."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quit.dataset.rows import QuestionRows, row_lists
from quit.errors import InputError
from quit.stages.labelling.passages import PassageRows


@given(st.lists(st.integers(1, 4), min_size=1, max_size=6), st.data())
def test_rows_of_some_questions_are_those_of_the_whole_table(counts: list[int], data: st.DataObject) -> None:
    ids = [f"q{place}" for place in range(len(counts))]
    owner = [question_id for question_id, count in zip(ids, counts, strict=True) for _ in range(count)]
    table = pa.table({"question_id": pa.array(owner).dictionary_encode(), "row": range(len(owner))})
    subset = data.draw(st.permutations(ids))
    positions = data.draw(st.lists(st.integers(0, len(ids) - 1), min_size=1, unique=True))

    rows = QuestionRows("labels", table, subset).take(np.array(positions))
    assert rows.to_pylist() == [
        row for place in positions for row in table.to_pylist() if row["question_id"] == subset[place]
    ]

    shuffled = table.take(data.draw(st.permutations(range(len(owner)))))
    lists = row_lists(shuffled, [*subset, "of another table"])
    assert lists.to_pylist() == [
        [row for row in shuffled.to_pylist() if row["question_id"] == question_id]
        for question_id in [*subset, "of another table"]
    ]


@pytest.mark.parametrize(
    ("question_ids", "hints", "message"),
    [
        (["a", "b", "a"], None, "rows of a question are not together in the table 'labels'"),
        (["a", "a"], None, "has 0 rows for the question 'b', expected at least one"),
        (["a"] * 4 + ["b"], 2, "has 1 rows for the question 'b', expected 4"),
    ],
)
def test_rows_that_do_not_fit(question_ids: list[str], hints: int | None, message: str) -> None:
    passages = PassageRows.full(2, hints) if hints else None
    with pytest.raises(InputError, match=message):
        QuestionRows("labels", pa.table({"question_id": question_ids}), ["a", "b"], passages)

"""Answers by number, against the rows with texts that they were made from."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quit import contracts
from quit.common.columns import first_matches
from quit.stages.labelling.answers import Answers, accepted_answers, cut_replies, number_answers
from quit.text.answers import answer_key
from tests.rows import answers_in

TEXTS = st.sampled_from(["Rome", "rome", "the Rome!", "NO ANSWER", "", "a\x1fb", "Ελλάδα"])
ROWS = st.lists(
    st.tuples(st.sampled_from("abc"), TEXTS, TEXTS, st.sampled_from(["stop", "length", None])), max_size=40
).map(lambda rows: sorted(rows, key=lambda row: row[0]))


def _replies(rows: list[tuple]) -> pa.Table:
    question_ids, answers, raws, ended = zip(*rows, strict=True) if rows else ((), (), (), ())
    columns = {
        "question_id": question_ids, "permutation": map(str, range(len(rows))), "reader": ["r"] * len(rows),
        "answer": answers, "raw": raws, "ended": ended, "producer": ["p"] * len(rows),
    }  # fmt: skip
    return pa.table({name: pa.array(list(values), pa.string()) for name, values in columns.items()})


@given(ROWS)
def test_no_text_is_lost_and_numbers_follow_the_first_passage(rows: list[tuple]) -> None:
    replies = _replies(rows)
    tables = number_answers(replies)
    texts = {(row["question_id"], row["number"]): row for row in tables["distinct_answers"].to_pylist()}
    for row, (question_id, *pair, ended) in zip(tables["answers"].to_pylist(), rows, strict=True):
        text = texts[question_id, row["number"]]
        assert [row["question_id"], text["answer"], text["raw"], row["ended"]] == [question_id, *pair, ended]
    for name, table in tables.items():
        assert table.schema.equals(contracts.table(name).schema)
    seen: dict[str, list[tuple]] = {}
    for question_id, answer, raw, _ in rows:
        if (answer, raw) not in seen.setdefault(question_id, []):
            seen[question_id].append((answer, raw))
    listed = [(question_id, number, *pair) for question_id, pairs in seen.items() for number, pair in enumerate(pairs)]
    distinct = tables["distinct_answers"].to_pylist()
    assert [(row["question_id"], row["number"], row["answer"], row["raw"]) for row in distinct] == listed
    assert all(row["answer_key"] == answer_key(row["answer"]) for row in distinct)


@given(ROWS)
def test_index_and_counts_find_each_rows_text_whatever_the_encoding(rows: list[tuple]) -> None:
    replies = _replies(rows)
    numbered = answers_in(replies)
    question_ids = numbered.rows.column("question_id").dictionary_encode()
    encoded = Answers(numbered.rows.set_column(0, "question_id", question_ids), numbered.distinct)
    for answers in (numbered, encoded):
        assert answers.distinct.column("answer").take(pa.array(answers.index)).to_pylist() == [row[1] for row in rows]
        assert answers.counts.sum() == len(rows)


def test_match_looks_at_question_and_text() -> None:
    answers = answers_in(_replies([("a", "Rome", "Rome", None), ("b", "Rome", "Rome", None), ("b", "Bari", "", None)]))
    verdicts = pa.table({"question_id": ["b", "a"], "answer_key": ["rome", "bari"], "correct": [True, True]})
    assert first_matches(answers.distinct, verdicts, ("question_id", "answer_key")).tolist() == [-1, 0, -1]
    assert accepted_answers(answers.distinct, verdicts).tolist() == [False, True, False]
    unreadable = verdicts.set_column(2, "correct", pa.array([None, True]))
    assert accepted_answers(answers.distinct, unreadable).tolist() == [False, False, False]


def test_replies_need_no_more_than_an_answer_and_those_not_asked_do_not_count() -> None:
    replies = _replies([("a", text, "", ended) for text, ended in (("Rome", "length"), ("x", None), ("Rome", "stop"))])
    answers = answers_in(replies.select(["question_id", "permutation", "answer"]))
    assert answers.distinct.select(["reader", "raw"]).to_pylist() == [{"reader": "", "raw": r} for r in ("Rome", "x")]
    assert answers.rows.select(["ended", "asked"]).to_pylist() == [{"ended": None, "asked": True}] * 3
    assert answers.asked is None and Answers(answers.rows.drop_columns(["asked"]), answers.distinct).asked is None
    partly = answers_in(replies.append_column("asked", [[True, False, False]]))
    assert partly.asked is not None and partly.asked.tolist() == [True, False, False]
    assert (answers.counts.tolist(), partly.counts.tolist()) == ([2, 1], [1, 0])
    assert [cut_replies(rows) for rows in (replies, replies.slice(1), replies.slice(0, 0))] == [1, 0, 0]


def test_rows_without_their_texts_are_refused() -> None:
    answers = answers_in(_replies([("a", "Rome", "Rome", None), ("b", "Bari", "Bari", None)]))
    with pytest.raises(ValueError, match="'b'"):
        _ = Answers(answers.rows, answers.distinct.slice(0, 1)).index
    beyond = answers.rows.set_column(3, "number", pa.array([0, 1], pa.int16()))
    with pytest.raises(ValueError, match="not among the distinct ones"):
        _ = Answers(beyond, answers.distinct).index
    for disordered in (answers.distinct.take([0, 1, 0]), answers.distinct.take([0, 0, 1])):
        with pytest.raises(ValueError, match="not numbered from 0"):
            _ = Answers(answers.rows, disordered).index
    with pytest.raises(ValueError, match="not together"):
        number_answers(_replies([("a", "x", "x", None), ("b", "x", "x", None), ("a", "x", "x", None)]))

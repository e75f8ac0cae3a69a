"""Readers' answers, kept as numbers.

A reader gives the same reply to many passages of a question. ``answers`` has one row per passage with the number of a
reply; ``distinct_answers`` has the reply with that number, counted from 0 in the order of the first passage that got
it. Replies are distinct by cleaned answer and raw text, so an answer may have several numbers. What judge, labels,
exports and reports need to know of a reply, they find out once and look up by number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quit import contracts
from quit.common.columns import first_matches, plain, runs, same
from quit.stages.stage import LazyTable
from quit.text.answers import answer_key


@dataclass(frozen=True, eq=False)
class Answers:
    """One reader's answers to some questions.

    ``rows``: columns of ``answers``, at least question_id and number, the rows of a question together; a passage about
    which the reader was not asked has the reply ``NO ANSWER`` with an empty raw text. ``distinct``: rows of
    ``distinct_answers`` of these questions, or more, as :func:`number_answers` orders them.
    """

    rows: pa.Table
    distinct: pa.Table

    @classmethod
    def numbered(cls, tables: Mapping[str, pa.Table]) -> Answers:
        """Return the answers in the tables of :func:`number_answers`."""
        return cls(tables["answers"], tables["distinct_answers"])

    @cached_property
    def starts(self) -> dict[str, tuple[int, int]]:
        """Question -> the first row of its distinct replies, and how many there are.

        Raises ``ValueError`` where they are not numbered from 0 in their order.
        """
        question_ids, starts, counts = runs(self.distinct.column("question_id"))
        numbers = np.arange(len(self.distinct)) - np.repeat(starts, counts)
        if len(set(question_ids)) < len(starts) or (self.distinct.column("number").to_numpy() != numbers).any():
            raise ValueError("The distinct answers are not numbered from 0 in their order.")
        return dict(zip(question_ids, zip(starts.tolist(), counts.tolist())))

    @cached_property
    def index(self) -> np.ndarray:
        """The row of ``distinct`` that holds each row's reply: int64, shape (rows,).

        Raises ``ValueError`` where there is none.
        """
        question_ids, _, lengths = runs(self.rows.column("question_id"))
        if missing := [question_id for question_id in question_ids if question_id not in self.starts]:
            raise ValueError(f"The question {missing[0]!r} has answers, and no distinct ones.")
        bounds = np.array([self.starts[question_id] for question_id in question_ids], dtype=np.int64).reshape(-1, 2)
        first, counts = (np.repeat(column, lengths) for column in bounds.T)
        numbers = self.rows.column("number").to_numpy()
        if ((numbers < 0) | (numbers >= counts)).any():
            raise ValueError("An answer has a number that is not among the distinct ones of its question.")
        return first + numbers

    @cached_property
    def counts(self) -> np.ndarray:
        """How many rows got each distinct reply: int64, shape (distinct replies,); those not asked do not count."""
        index = self.index if self.asked is None else self.index[self.asked]
        return np.bincount(index, minlength=len(self.distinct))

    @cached_property
    def asked(self) -> np.ndarray | None:
        """Whether the reader was asked about each row's passage: bool, shape (rows,); None where it was about all."""
        if "asked" not in self.rows.column_names:
            return None
        asked = self.rows.column("asked").to_numpy()
        return None if asked.all() else asked


def is_cut(answers: pa.Table) -> pa.ChunkedArray:
    """Return for each row of ``answers`` (column ended) whether its reply ran into the token limit."""
    return pc.fill_null(pc.equal(answers.column("ended"), "length"), False)


def cut_replies(answers: pa.Table) -> int:
    """Return how many rows of ``answers`` (column ended) have a reply that ran into the token limit."""
    return pc.sum(is_cut(answers)).as_py() or 0


def accepted_answers(distinct: pa.Table, verdicts: pa.Table) -> np.ndarray:
    """Return for each row of ``distinct_answers`` whether it was judged correct: bool, shape (rows,)."""
    correct = pc.fill_null(verdicts.column("correct"), False).to_numpy()
    rows = first_matches(distinct, verdicts, ("question_id", "answer_key"))
    return np.append(correct, False)[rows]  # the last one: without a verdict


def fully_relevant(right: Sequence[np.ndarray] | np.ndarray) -> np.ndarray:
    """Return which passages have label 2: those that at least one labeler answers correctly (paper, section 3.2.2).

    ``right``: whether each labeler does, bool, shape (labelers, ...); the result has the shape (...).
    """
    return np.any(right, axis=0)


def answers_of(
    reader: str, answers: LazyTable, distinct_answers: LazyTable, question_ids: Sequence[str] | None = None
) -> Answers:
    """Return one reader's answers (columns question_id, permutation, number, asked), those to some questions or to
    all."""
    rows = answers(["question_id", "permutation", "number", "asked"], reader, question_ids)
    return Answers(rows, distinct_answers(["question_id", "number", "answer", "answer_key"], reader, question_ids))


def check_order(answers: Mapping[str, Answers], passages: pa.Table) -> None:
    """Raise ``ValueError`` if a labeler answered others than ``passages`` (question_id, permutation), or unordered."""
    for name, of_labeler in answers.items():
        if not all(same(of_labeler.rows.column(key), passages.column(key)) for key in ("question_id", "permutation")):
            raise ValueError(f"The answers of {name} are not those to the passages, in their order.")


def number_answers(replies: pa.Table) -> dict[str, pa.Table]:
    """Return the tables ``answers`` and ``distinct_answers`` of one reader's replies.

    ``replies``: question_id, permutation and answer, and where they are known reader, producer, raw (else the answer),
    ended (else null) and asked (else true); the rows of a question are together. Raises ``ValueError`` where they are
    not.
    """
    blank = pa.repeat("", len(replies))
    for name, default in (
        ("reader", blank),
        ("producer", blank),
        ("raw", replies.column("answer")),
        ("ended", pa.nulls(len(replies), pa.string())),
        ("asked", pa.repeat(True, len(replies))),
    ):
        if name not in replies.column_names:
            replies = replies.append_column(name, default)
    question_ids, _, lengths = runs(replies.column("question_id"))
    if len(set(question_ids)) < len(question_ids):
        raise ValueError("The rows of a question are not together.")
    owner = np.repeat(np.arange(len(question_ids)), lengths)
    texts = [plain(replies.column(name)).dictionary_encode() for name in ("answer", "raw")]
    places = (owner, *(text.indices.to_numpy() for text in texts))
    pairs = np.ravel_multi_index(places, (len(question_ids), *(len(text.dictionary) for text in texts)))
    _, first, index = np.unique(pairs, return_index=True, return_inverse=True)
    by_first_passage = np.argsort(first)
    rank = np.empty_like(by_first_passage)
    rank[by_first_passage] = np.arange(len(first))
    first = first[by_first_passage]
    offsets = np.searchsorted(owner[first], np.arange(len(question_ids)))
    distinct = replies.take(pa.array(first))
    answers = distinct.column("answer").cast(pa.string())
    names = ("question_id", "permutation", "reader", "producer", "ended", "asked")
    columns_of = {
        "answers": {
            **{name: replies.column(name) for name in names},
            "number": pa.array(rank[index] - offsets[owner], pa.int16()),
        },
        "distinct_answers": {
            **{name: distinct.column(name) for name in ("question_id", "reader", "raw")},
            "number": pa.array(np.arange(len(first)) - offsets[owner[first]], pa.int16()),
            "answer": answers,
            "answer_key": pa.array([answer_key(text) for text in answers.to_pylist()], pa.string()),
        },
    }
    return {name: contracts.table(name).from_columns(columns) for name, columns in columns_of.items()}

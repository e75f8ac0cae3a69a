"""Label: passages and valid answers from answers and verdicts (paper, section 3.2.2).

A passage is fully relevant (2) if at least one labeler's answer is correct, else partially (1). A correct answer of a
labeler joins the question's valid answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from quit import contracts
from quit.common.columns import plain, runs
from quit.common.rows import grouped, tuples
from quit.stages.labelling.answers import Answers, accepted_answers, answers_of, check_order, fully_relevant
from quit.stages.stage import Context, LazyTable, Tables, stage
from quit.text.answers import answer_key


@stage("label", outputs=("labels", "valid_answers"), models=("labelers",), shard_factor=16)
def label_stage(
    context: Context,
    questions: LazyTable,
    passages: LazyTable,
    answers: LazyTable,
    distinct_answers: LazyTable,
    verdicts: LazyTable,
) -> Tables:
    """Label each passage 2 or 1."""
    by_labeler = {
        labeler.name: answers_of(labeler.name, answers, distinct_answers) for labeler in context.settings.labelers
    }
    return label_passages(
        questions(["question_id", "answers"]),
        passages(["question_id", "permutation"]),
        by_labeler,
        verdicts(["question_id", "answer_key", "correct"]),
    )


class ValidAnswer(NamedTuple):
    """A row of the table ``valid_answers``."""

    question_id: str
    answer: str | None
    answer_key: str
    origin: str
    passages: int

    @property
    def identity(self) -> tuple[str, str]:
        return self.question_id, self.answer_key


def valid_answers_table(rows: Iterable[ValidAnswer]) -> pa.Table:
    return contracts.table("valid_answers").from_rows([row._asdict() for row in rows])


def label_passages(
    questions: pa.Table, passages: pa.Table, answers: Mapping[str, Answers], verdicts: pa.Table
) -> dict[str, pa.Table]:
    """Return the tables ``labels`` and ``valid_answers``.

    ``questions``: question_id and answers; ``passages``: question_id and permutation; ``answers``: labeler name -> its
    answers in the same order; ``verdicts``: question_id, answer_key and correct. Raises ``ValueError`` if answers are
    not in the order of the passages.
    """
    check_order(answers, passages)
    accepted = [accepted_answers(of_labeler.distinct, verdicts) for of_labeler in answers.values()]
    return {
        "labels": labels_of(passages, answers, accepted),
        "valid_answers": valid_answers_of(questions, passages, answers, accepted),
    }


def labels_of(passages: pa.Table, answers: Mapping[str, Answers], accepted: Sequence[np.ndarray]) -> pa.Table:
    """Return the table ``labels`` of some passages (question_id, permutation); ``accepted``: of each labeler, which of
    its distinct answers are right."""
    names = list(answers)
    right = [is_right[of_labeler.index] for of_labeler, is_right in zip(answers.values(), accepted, strict=True)]
    bits = sum(is_right.astype(np.int64) << position for position, is_right in enumerate(right))
    encoded = pa.array(bits).dictionary_encode()
    numbers = encoded.dictionary.to_pylist()
    sets = [[name for position, name in enumerate(names) if number >> position & 1] for number in numbers]
    contract = contracts.table("labels").schema
    return pa.table(
        {
            "question_id": plain(passages.column("question_id")),
            "permutation": plain(passages.column("permutation")),
            "label": pa.array(np.where(fully_relevant(right), 2, 1), pa.int16()),
            "labelers": pa.array(sets, contract.field("labelers").type).take(encoded.indices),
        },
        schema=contract,
    )


def valid_answers_of(
    questions: pa.Table, passages: pa.Table, answers: Mapping[str, Answers], accepted: Sequence[np.ndarray]
) -> pa.Table:
    """Return the table ``valid_answers`` of the questions in ``passages``: gold answers, then every form that a labeler
    gave and that is right (``accepted``: of each labeler, which of its distinct answers are)."""
    counts: dict[tuple[str, str], int] = {}
    for of_labeler, is_right in zip(answers.values(), accepted, strict=True):
        rows = np.flatnonzero(is_right & (of_labeler.counts > 0))
        distinct = of_labeler.distinct.select(["question_id", "answer"]).take(pa.array(rows))
        keys = tuples(distinct, "question_id", "answer")
        for (question_id, answer), count in zip(keys, of_labeler.counts[rows].tolist(), strict=True):
            counts[question_id, answer] = counts.get((question_id, answer), 0) + count
    present = set(runs(passages.column("question_id")).values)
    by_question = grouped(sorted(counts))
    valid = []
    for identity, answers_of_question in tuples(questions, "question_id", "answers"):
        if identity not in present:
            continue
        gold = list(dict.fromkeys(answers_of_question))
        others = [form for form in by_question.get(identity, []) if form not in gold]
        for origin, forms in (("gold", gold), ("labeler", others)):
            for form in forms:
                passages_of = counts.get((identity, form), 0)
                valid.append(ValidAnswer(identity, form, answer_key(form), origin, passages_of))
    return valid_answers_table(valid)

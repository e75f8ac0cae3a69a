"""Label: passages and valid answers from answers and verdicts (paper, section 3.2.2).

A passage is fully relevant (2) if at least one labeler's answer is correct, else partially (1). A correct answer of a
labeler joins the question's valid answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

import schemas
from quit.evaluate.normalize import normalize_answer
from quit.stages.stage import Context, Tables, stage


@stage("label", outputs=("labels", "valid_answers"), models=("labelers",))
def label_stage(
    context: Context, questions: pa.Table, passages: pa.Table, answers: pa.Table, verdicts: pa.Table
) -> Tables:
    """Label each passage 2 or 1."""
    by_labeler = {
        labeler.name: answers.filter(pc.equal(answers.column("reader"), labeler.name))
        for labeler in context.settings.labelers
    }
    return label_passages(questions, passages, by_labeler, verdicts)


def label_passages(
    questions: pa.Table,
    passages: pa.Table,
    answers: Mapping[str, pa.Table],
    verdicts: pa.Table,
) -> dict[str, pa.Table]:
    """Return the tables ``labels`` and ``valid_answers``.

    ``answers``: labeler name -> its answers in the order of ``passages``. Raises ``ValueError`` if one of them is not
    in that order.
    """
    accepted = accepted_answers(verdicts)
    right: list[pa.Array] = []
    for name, rows in answers.items():
        if not (
            rows.column("question_id").equals(passages.column("question_id"))
            and rows.column("permutation").equals(passages.column("permutation"))
        ):
            raise ValueError(f"The answers of {name} are not those to the passages given.")
        right.append(_is_accepted(rows, accepted))
    labelers, label = combine_labels(list(answers), right, len(passages))
    labels = pa.table(
        {
            "question_id": passages.column("question_id"),
            "permutation": passages.column("permutation"),
            "label": label,
            "labelers": labelers,
        },
        schema=schemas.table("labels").schema,
    )
    return {"labels": labels, "valid_answers": valid_answers_of(questions, passages, answers, right)}


def accepted_answers(verdicts: pa.Table) -> set[tuple[str, str]]:
    """Return the (question id, normalised answer) pairs judged correct."""
    right = verdicts.filter(pc.fill_null(verdicts.column("correct"), False))
    return set(zip(right.column("question_id").to_pylist(), right.column("answer_key").to_pylist(), strict=True))


def distinct_answers(rows: pa.Table) -> tuple[pa.Array, list[tuple[str, str]]]:
    """Return for each row the place of its (question id, answer) among the distinct ones, and these (not
    normalised)."""
    both = (
        pc.binary_join_element_wise(rows.column("question_id"), rows.column("answer"), "\x1f")
        .combine_chunks()
        .dictionary_encode()
    )
    if isinstance(both, pa.ChunkedArray):
        both = both.combine_chunks()
    return both.indices, [tuple(text.split("\x1f", 1)) for text in both.dictionary.to_pylist()]


def _is_accepted(rows: pa.Table, accepted: set[tuple[str, str]]) -> pa.Array:
    """Return for each row whether its answer is accepted; Python looks at distinct (question, answer) pairs only."""
    places, distinct = distinct_answers(rows)
    known = pa.array([(identity, normalize_answer(answer)) in accepted for identity, answer in distinct], pa.bool_())
    return known.take(places)


def combine_labels(names: Sequence[str], right: Sequence[pa.Array], rows: int) -> tuple[pa.Array, pa.Array]:
    """Return the names of the labelers that are right, and the label, of each row; ``right``: one array of booleans a
    labeler."""
    if not names:
        return pa.array([[]] * rows, schemas.table("labels").schema.field("labelers").type), pa.array(
            [1] * rows, pa.int16()
        )
    mask = right[0].cast(pa.int32())
    for position, is_right in enumerate(right[1:], start=1):
        mask = pc.add(mask, pc.multiply(is_right.cast(pa.int32()), 1 << position))
    sets = [[name for position, name in enumerate(names) if bits >> position & 1] for bits in range(1 << len(names))]
    labelers = pa.array(sets, schemas.table("labels").schema.field("labelers").type).take(mask)
    label = pc.if_else(pc.greater(mask, 0), pa.scalar(2, pa.int16()), pa.scalar(1, pa.int16()))
    return labelers, label


def valid_answers_of(
    questions: pa.Table, passages: pa.Table, answers: Mapping[str, pa.Table], right: Sequence[pa.Array]
) -> pa.Table:
    """Return the table ``valid_answers`` of the questions in ``passages``: gold answers, then every form that a labeler
    gave and that is right (``right``: one array of booleans a labeler, beside its rows of ``answers``)."""
    counts: dict[tuple[str, str], int] = {}
    for rows, is_right in zip(answers.values(), right, strict=True):
        for group in (
            rows.filter(is_right).group_by(["question_id", "answer"]).aggregate([([], "count_all")]).to_pylist()
        ):
            key = (group["question_id"], group["answer"])
            counts[key] = counts.get(key, 0) + group["count_all"]
    present = set(passages.column("question_id").unique().to_pylist())
    by_question: dict[str, list[str]] = {}
    for identity, answer in sorted(counts):
        by_question.setdefault(identity, []).append(answer)
    valid = []
    for row in questions.to_pylist():
        identity = row["question_id"]
        if identity not in present:
            continue
        gold = list(dict.fromkeys(row["answers"]))
        for origin, forms in (
            ("gold", gold),
            ("labeler", [form for form in by_question.get(identity, []) if form not in gold]),
        ):
            for form in forms:
                valid.append(
                    {
                        "question_id": identity,
                        "answer": form,
                        "answer_key": normalize_answer(form),
                        "origin": origin,
                        "passages": counts.get((identity, form), 0),
                    }
                )
    return schemas.table("valid_answers").from_rows(valid)

"""Probe: which questions do the readers answer without any hint (paper, section 3.1.4)?"""

from __future__ import annotations

import pyarrow as pa

from quit import contracts
from quit.models.judges import rule
from quit.models.protocols import NO_ANSWER, Judge, JudgeItem, Prompt, Reader, Reply
from quit.models.readers.cleaning import says_no_answer
from quit.stages.stage import COLLECTION, Context, Tables, stage


@stage(
    "probe",
    whole=COLLECTION,
    outputs=("probe_answers",),
    sections=("probe",),
    models=("reader", "judge"),
    per_reader=True,
    version=2,
)
def probe_stage(context: Context, questions: pa.Table, descriptions: pa.Table) -> Tables:
    """Each reader answers the question alone."""
    assert context.reader is not None
    reader = context.models.reader(context.reader, context.whole)
    repetitions = context.settings.probe.repetitions
    return {"probe_answers": probe(questions, descriptions, reader, context.models.judge, repetitions)}


def probe(questions: pa.Table, descriptions: pa.Table, reader: Reader, judge: Judge, repetitions: int) -> pa.Table:
    """Return the table ``probe_answers``: a reader's answer to every described question, ``repetitions`` times, judged.

    The judge sees the reply as the reader wrote it: a full sentence may be right, though as an answer to a passage it
    is none.
    """
    types = {row["question_id"]: row for row in descriptions.to_pylist()}
    rows_of_questions = [row for row in questions.to_pylist() if row["question_id"] in types]
    prompts = [
        Prompt(
            row["question_id"],
            row["question"],
            (),
            types[row["question_id"]]["coarse"],
            types[row["question_id"]]["fine"],
        )
        for row in rows_of_questions
    ]
    rows = []
    for repetition in range(repetitions):
        replies = reader.answer(prompts, sample=repetition)
        items = [
            JudgeItem(row["question_id"], row["question"], tuple(row["answers"]), _as_written(reply))
            for row, reply in zip(rows_of_questions, replies, strict=True)
        ]
        for row, reply, ruling in zip(rows_of_questions, replies, rule(items, judge, repetition)):
            rows.append(
                {
                    "question_id": row["question_id"],
                    "reader": reader.name,
                    "repetition": repetition,
                    "raw": reply.raw,
                    "answer": reply.answer,
                    "correct": ruling.verdict.correct,
                    "producer": reader.identity,
                    "judge": judge.identity,
                }
            )
    rows.sort(key=lambda row: (row["question_id"], row["repetition"]))
    return contracts.table("probe_answers").from_rows(rows)


def _as_written(reply: Reply) -> str:
    """Return what the judge sees of a reply; ``NO ANSWER`` where the reader begins with that."""
    text = reply.raw.strip()
    return NO_ANSWER if says_no_answer(" ".join(text.lstrip("(\"'*").split()[:2])) else text


def parametric(probe_answers: pa.Table) -> dict[str, bool]:
    """Return whether each probed question is parametrically answerable: any reader right in any repetition."""
    answerable: dict[str, bool] = {}
    for question_id, correct in zip(*(probe_answers.column(name).to_pylist() for name in ("question_id", "correct"))):
        answerable[question_id] = answerable.get(question_id, False) or bool(correct)
    return answerable

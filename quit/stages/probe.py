"""Probe: which questions do the readers answer without any hint (paper, section 3.1.4)?"""

from __future__ import annotations

from functools import partial
from typing import Any

import pyarrow as pa

from quit import contracts
from quit.common.rows import tuples
from quit.errors import all_of
from quit.models.judges import rule
from quit.models.protocols import Judge, JudgeItem, Reader
from quit.models.readers.cleaning import as_written
from quit.stages.read import prompts_without_hints
from quit.stages.stage import ANSWER_POOL_TABLES, Context, Tables, stage


@stage(
    "probe",
    whole=ANSWER_POOL_TABLES,
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
    prompts = prompts_without_hints(questions, descriptions)
    rows_of_questions = [row for row in questions.to_pylist() if row["question_id"] in prompts]
    samples = range(repetitions)
    answers = all_of(partial(reader.answer, [*prompts.values()], sample=sample) for sample in samples)

    def judged(sample: int) -> list[dict[str, Any]]:
        items = [
            JudgeItem(row["question_id"], row["question"], tuple(row["answers"]), as_written(reply.raw))
            for row, reply in zip(rows_of_questions, answers[sample], strict=True)
        ]
        rulings = rule(items, judge, sample)
        identities = {"reader": reader.name, "producer": reader.identity, "judge": judge.identity}
        return [
            {"question_id": item.question_id, "repetition": sample, "raw": reply.raw, "answer": reply.answer}
            | {"correct": ruling.verdict.correct, **identities}
            for item, reply, ruling in zip(items, answers[sample], rulings, strict=True)
        ]

    rows = [row for of_sample in all_of(partial(judged, sample) for sample in samples) for row in of_sample]
    rows.sort(key=lambda row: (row["question_id"], row["repetition"]))
    return contracts.table("probe_answers").from_rows(rows)


def parametric(probe_answers: pa.Table) -> dict[str, bool]:
    """Return whether each probed question is parametrically answerable: any reader right in any repetition."""
    answerable: dict[str, bool] = {}
    for question_id, correct in tuples(probe_answers, "question_id", "correct"):
        answerable[question_id] = answerable.get(question_id, False) or bool(correct)
    return answerable

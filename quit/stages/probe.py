"""Probe: which questions do the readers answer without any hint (paper, section 3.1.4)?"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

import schemas
from quit.models.judges import rule
from quit.models.protocols import Judge, JudgeItem, Prompt, Reader
from quit.stages.stage import COLLECTION, Context, Tables, stage


@stage("probe", whole=COLLECTION, outputs=("probe_answers",), sections=("probe",), models=("readers", "judge"))
def probe_stage(context: Context, questions: pa.Table, descriptions: pa.Table) -> Tables:
    """Ask every reader the question alone."""
    models, settings = context.models, context.settings
    readers = [models.reader(reader.name, context.whole) for reader in settings.readers]
    return {"probe_answers": probe(questions, descriptions, readers, models.judge, settings.probe.repetitions)}


def probe(
    questions: pa.Table, descriptions: pa.Table, readers: Sequence[Reader], judge: Judge, repetitions: int
) -> pa.Table:
    """Return the table ``probe_answers``: every reader's answer to every described question, ``repetitions`` times,
    judged."""
    types = {row["question_id"]: row for row in descriptions.to_pylist()}
    asked = [row for row in questions.to_pylist() if row["question_id"] in types]
    prompts = [
        Prompt(
            row["question_id"],
            row["question"],
            (),
            types[row["question_id"]]["coarse"],
            types[row["question_id"]]["fine"],
        )
        for row in asked
    ]
    rows = []
    for reader in readers:
        for repetition in range(repetitions):
            replies = reader.answer(prompts, sample=repetition)
            items = [
                JudgeItem(row["question_id"], row["question"], tuple(row["answers"]), reply.answer)
                for row, reply in zip(asked, replies, strict=True)
            ]
            for row, reply, ruling in zip(asked, replies, rule(items, judge, repetition), strict=True):
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
    order = {reader.name: position for position, reader in enumerate(readers)}
    rows.sort(key=lambda row: (row["question_id"], order[row["reader"]], row["repetition"]))
    return schemas.table("probe_answers").from_rows(rows)


def parametric(probe_answers: pa.Table) -> dict[str, bool]:
    """Return whether each probed question is parametrically answerable: any reader right in any repetition."""
    answerable: dict[str, bool] = {}
    for identity, correct in zip(
        probe_answers.column("question_id").to_pylist(), probe_answers.column("correct").to_pylist(), strict=True
    ):
        answerable[identity] = answerable.get(identity, False) or bool(correct)
    return answerable

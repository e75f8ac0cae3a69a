"""Probe: which questions do the readers answer without any hint (paper, section 3.1.4)?"""

from __future__ import annotations

from functools import partial

import pyarrow as pa

from quit import contracts
from quit.common.progress import note
from quit.common.rows import grouped, tuples
from quit.common.tasks import all_of
from quit.models.judges import Ruling, rule
from quit.models.protocols import Judge, JudgeItem, Reader
from quit.models.readers.cleaning import as_written
from quit.stages.read import prompts_without_hints
from quit.stages.stage import ANSWER_POOL_TABLES, Context, Tables, stage
from quit.text.words import counted


def judged_replies(context: Context, tables: Tables, questions: pa.Table) -> Tables:
    """Return the reader's replies with the judge's verdicts."""
    return {"probe_answers": judged(tables["probe_answers"], questions, context.models.judge)}


@stage(
    "probe",
    whole=ANSWER_POOL_TABLES,
    outputs=("probe_answers",),
    sections=("probe",),
    models=("reader", "judge"),
    after=judged_replies,
    per_reader=True,
    version=2,
)
def probe_stage(context: Context, questions: pa.Table, descriptions: pa.Table) -> Tables:
    """Each reader answers the question alone."""
    assert context.reader is not None
    reader = context.models.reader(context.reader, context.whole)
    return {"probe_answers": probe(questions, descriptions, reader, context.settings.probe.repetitions)}


def probe(questions: pa.Table, descriptions: pa.Table, reader: Reader, repetitions: int) -> pa.Table:
    """Return the table ``probe_answers`` without verdicts: a reader's answer to every described question,
    ``repetitions`` times."""
    prompts = prompts_without_hints(questions, descriptions)
    samples = range(repetitions)
    answers = all_of(partial(reader.answer, [*prompts.values()], sample=sample) for sample in samples)
    rows = [
        {"question_id": question_id, "repetition": sample, "raw": reply.raw, "answer": reply.answer}
        | {"reader": reader.name, "producer": reader.identity}
        for sample in samples
        for question_id, reply in zip(prompts, answers[sample], strict=True)
    ]
    rows.sort(key=lambda row: (row["question_id"], row["repetition"]))
    return pa.Table.from_pylist(rows, contracts.table("probe_answers").schema)


def judged(probe_answers: pa.Table, questions: pa.Table, judge: Judge) -> pa.Table:
    """Return the table ``probe_answers`` with verdicts.

    The judge sees the reply as the reader wrote it: a full sentence may be right, though as an answer to a passage it
    is none.
    """
    texts = {name: (text, tuple(gold)) for name, text, gold in tuples(questions, "question_id", "question", "answers")}
    by_sample = grouped((row["repetition"], row) for row in probe_answers.to_pylist())

    def rulings(sample: int) -> list[Ruling]:
        rows = by_sample[sample]
        items = [JudgeItem(row["question_id"], *texts[row["question_id"]], as_written(row["raw"])) for row in rows]
        return rule(items, judge, sample)

    rows = [
        {**row, "correct": ruling.verdict.correct, "judge": judge.identity}
        for sample, of_sample in zip(by_sample, all_of(partial(rulings, sample) for sample in by_sample), strict=True)
        for row, ruling in zip(by_sample[sample], of_sample, strict=True)
    ]
    rows.sort(key=lambda row: (row["question_id"], row["repetition"]))
    if unread := sum(row["correct"] is None for row in rows):
        which = f"{unread:,} of {counted(len(rows), 'answer')} without hints"
        note(f"The judge's verdict on {which} cannot be read: they count as wrong, for dev and test too.", loud=True)
    return contracts.table("probe_answers").from_rows(rows)


def parametric(probe_answers: pa.Table) -> dict[str, bool]:
    """Return whether each probed question is parametrically answerable: any reader right in any repetition."""
    answerable: dict[str, bool] = {}
    for question_id, correct in tuples(probe_answers, "question_id", "correct"):
        answerable[question_id] = answerable.get(question_id, False) or bool(correct)
    return answerable

"""Read: the readers' answers to every passage (paper, section 3.2.2)."""

from __future__ import annotations

import pyarrow as pa

from quit.models.protocols import Prompt, Reader
from quit.stages.answers import number_answers
from quit.stages.stage import COLLECTION, Context, Tables, stage


@stage(
    "read",
    whole=COLLECTION,
    outputs=("answers", "distinct_answers"),
    sections=("labels",),
    models=("reader",),
    per_reader=True,
)
def read_stage(
    context: Context, questions: pa.Table, ranked_hints: pa.Table, descriptions: pa.Table, passages: pa.Table
) -> Tables:
    """Each reader answers from every passage."""
    assert context.reader is not None
    reader = context.models.reader(context.reader, context.whole)
    return read_passages(questions, ranked_hints, descriptions, passages, reader)


def read_passages(
    questions: pa.Table, ranked_hints: pa.Table, descriptions: pa.Table, passages: pa.Table, reader: Reader
) -> dict[str, pa.Table]:
    """Return the tables ``answers`` (one row a passage, in the order of ``passages``) and ``distinct_answers`` of one
    reader."""
    texts = dict(
        zip(questions.column("question_id").to_pylist(), questions.column("question").to_pylist(), strict=True)
    )
    types = {row["question_id"]: row for row in descriptions.select(["question_id", "coarse", "fine"]).to_pylist()}
    hints = selected_hints(ranked_hints)
    prompts = []
    for identity, permutation in zip(
        passages.column("question_id").to_pylist(), passages.column("permutation").to_pylist(), strict=True
    ):
        mine, typed = hints[identity], types[identity]
        chosen = tuple(mine[int(index)] for index in permutation)
        prompts.append(Prompt(identity, texts[identity], chosen, typed["coarse"], typed["fine"]))
    replies = reader.answer(prompts)
    rows = len(prompts)
    return number_answers(
        pa.table(
            {
                "question_id": passages.column("question_id"),
                "permutation": passages.column("permutation"),
                "reader": pa.repeat(pa.scalar(reader.name), rows),
                "answer": pa.array([reply.answer for reply in replies], pa.string()),
                "raw": pa.array([reply.raw for reply in replies], pa.string()),
                "ended": pa.array([reply.ended for reply in replies], pa.string()),
                "producer": pa.repeat(pa.scalar(reader.identity), rows),
            }
        )
    )


def selected_hints(ranked_hints: pa.Table) -> dict[str, list[str]]:
    """Return question id -> its selected hints in rank order (index 0 to 4)."""
    hints: dict[str, list[str]] = {}
    for row in (
        ranked_hints.filter(ranked_hints.column("selected"))
        .sort_by([("question_id", "ascending"), ("rank", "ascending")])
        .to_pylist()
    ):
        hints.setdefault(row["question_id"], []).append(row["hint"])
    return hints

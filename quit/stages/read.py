"""Read: the readers' answers to every passage (paper, section 3.2.2)."""

from __future__ import annotations

from collections.abc import Sequence, Set

import numpy as np
import pyarrow as pa

from quit.common.rows import grouped, tuples
from quit.models.protocols import NO_ANSWER, Judge, Prompt, Reader, Reply
from quit.stages.judge import judge_answers
from quit.stages.labelling.answers import Answers, accepted_answers, answers_of, fully_relevant, number_answers
from quit.stages.labelling.passages import passage_hints
from quit.stages.labelling.strategy import LabellingStrategy
from quit.stages.labelling.verdicts import contents
from quit.stages.stage import ANSWER_POOL_TABLES, Context, LazyTable, Tables, stage

NOT_ASKED = Reply("", NO_ANSWER)
"""The reply to a passage about which the reader was not asked."""


def open_passages(
    context: Context,
    questions: pa.Table,
    ranked_hints: pa.Table,
    passages: pa.Table,
    answers: LazyTable | None = None,
    distinct_answers: LazyTable | None = None,
) -> np.ndarray:
    """Return about which passages the reader is asked: bool, shape (passages,). ``answers`` and ``distinct_answers``:
    of labelers whose correct answers spare it passages."""
    if answers is None or distinct_answers is None:
        return np.ones(len(passages), dtype=bool)
    names = LabellingStrategy(context.settings).earlier_labelers(context.reader)
    earlier = [answers_of(name, answers, distinct_answers) for name in names]
    current = contents(questions, ranked_hints, [question_id for question_id, _, _ in context.rejected])
    rejected = {(name, key) for name, content, key in context.rejected if content in current.get(name, ())}
    return unsolved_passages(questions, earlier, context.models.judge, rejected)


@stage(
    "read",
    before=open_passages,
    whole=ANSWER_POOL_TABLES,
    outputs=("answers", "distinct_answers"),
    sections=("labels",),
    models=("reader",),
    also=lambda settings, reader: LabellingStrategy(settings).reader_parts(reader),
    per_reader=True,
    version=2,
)
def read_stage(
    context: Context,
    to_ask: np.ndarray,
    questions: pa.Table,
    ranked_hints: pa.Table,
    descriptions: pa.Table,
    passages: pa.Table,
) -> Tables:
    """Each reader answers from every passage."""
    assert context.reader is not None
    reader = context.models.reader(context.reader, context.whole)
    replies = np.full(len(passages), NOT_ASKED, dtype=object)
    replies[to_ask] = reader.answer(
        prompts_of(questions, ranked_hints, descriptions, passages.filter(pa.array(to_ask)))
    )
    return answer_tables(passages, reader, replies)


def unsolved_passages(
    questions: pa.Table, earlier: Sequence[Answers], judge: Judge, rejected: Set[tuple[str, str]]
) -> np.ndarray:
    """Return which passages no labeler has answered correctly so far: bool, shape (passages,).

    ``earlier``: the answers of the labelers asked so far, in their order. ``rejected``: (question id, normalised
    answer) that people reject; such an answer leaves its passages open, whatever the judge says.
    """
    verdicts = judge_answers(questions, earlier, judge, first_reader_wins=True)
    keys = tuples(verdicts, "question_id", "answer_key")
    accepted = verdicts.filter(pa.array([key not in rejected for key in keys], pa.bool_()))
    right = [accepted_answers(of_labeler.distinct, accepted)[of_labeler.index] for of_labeler in earlier]
    return ~fully_relevant(right)


def answer_tables(passages: pa.Table, reader: Reader, replies: np.ndarray) -> dict[str, pa.Table]:
    """Return the tables ``answers`` and ``distinct_answers`` of a reader's replies: :class:`Reply`, shape (passages,),
    ``NOT_ASKED`` where there is none."""
    rows = len(passages)
    return number_answers(
        pa.table(
            {
                "question_id": passages.column("question_id"),
                "permutation": passages.column("permutation"),
                "reader": pa.repeat(pa.scalar(reader.name), rows),
                "answer": pa.array([reply.answer for reply in replies], pa.string()),
                "raw": pa.array([reply.raw for reply in replies], pa.string()),
                "ended": pa.array([None if reply is NOT_ASKED else reply.ended for reply in replies], pa.string()),
                "asked": pa.array([reply is not NOT_ASKED for reply in replies], pa.bool_()),
                "producer": pa.repeat(pa.scalar(reader.identity), rows),
            }
        )
    )


def prompts_of(questions: pa.Table, ranked_hints: pa.Table, descriptions: pa.Table, passages: pa.Table) -> list[Prompt]:
    """Return what a reader is asked about each of ``passages`` (columns question_id, permutation), in order."""
    alone, hints = prompts_without_hints(questions, descriptions), selected_hints(ranked_hints)
    prompts = []
    for identity, permutation in tuples(passages, "question_id", "permutation"):
        prompt, texts = alone[identity], passage_hints(hints[identity], permutation)
        prompts.append(Prompt(identity, prompt.question, texts, prompt.coarse, prompt.fine))
    return prompts


def prompts_without_hints(questions: pa.Table, descriptions: pa.Table) -> dict[str, Prompt]:
    """Return question id -> what a reader is asked about the question alone, for each described question."""
    types = {row["question_id"]: (row["coarse"], row["fine"]) for row in descriptions.to_pylist()}
    texts = tuples(questions, "question_id", "question")
    return {name: Prompt(name, text, (), *types[name]) for name, text in texts if name in types}


def selected_hints(ranked_hints: pa.Table) -> dict[str, list[str]]:
    """Return question id -> its selected hints in rank order (index 0 to 4)."""
    selected = ranked_hints.filter(ranked_hints.column("selected"))
    in_order = selected.sort_by([("question_id", "ascending"), ("rank", "ascending")])
    return grouped(tuples(in_order, "question_id", "hint"))

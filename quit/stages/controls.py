"""Controls of the probe: what does a reader answer without the question, from wrong hints, from words without order?

Runs only with ``probe.controls``: for so many questions, those with the lowest keyed hashes. ``no question`` has the
question's hints and nothing else; ``other hints`` the hints of the next question of that order that has other gold
answers; ``shuffled words`` the words of its hints in drawn order, as one text. ``no hints`` is the first answer of the
probe.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from quit import contracts
from quit.common.ids import draw
from quit.models.protocols import Prompt
from quit.stages.probe import judged_replies
from quit.stages.read import prompts_without_hints, selected_hints
from quit.stages.stage import ANSWER_POOL_TABLES, Context, LazyTable, Tables, stage
from quit.text.normalize import normalize_answer


@stage(
    "controls",
    whole=ANSWER_POOL_TABLES,
    outputs=("controls",),
    sections=("probe.controls", "split.seed"),
    models=("reader", "judge"),
    scope="collection",
    per_reader=True,
    on_demand=lambda settings: settings.probe.controls > 0,
)
def controls_stage(
    context: Context, questions: pa.Table, descriptions: pa.Table, ranked_hints: pa.Table, probe_answers: LazyTable
) -> Tables:
    """Each reader answers some questions without the question, from wrong hints, from shuffled words."""
    assert context.reader is not None
    reader, judge = context.models.reader(context.reader, context.whole), context.models.judge
    size, seed = context.settings.probe.controls, context.settings.split.seed
    sample = list(control_prompts(questions, descriptions, selected_hints(ranked_hints), size, seed))
    rows_of_questions, controls, prompts = zip(*sample, strict=True)
    replies = reader.answer(prompts)
    judged = judged_replies(rows_of_questions, replies, [reply.answer for reply in replies], reader, judge)
    rows = [{**row, "control": control} for row, control in zip(judged, controls, strict=True)]
    question_ids = list(dict.fromkeys(row["question_id"] for row in rows))
    columns = ["question_id", "reader", "repetition", "raw", "answer", "correct", "producer", "judge"]
    without_hints = probe_answers(columns, reader=context.reader, question_ids=question_ids).to_pylist()
    rows += [{**row, "control": "no hints"} for row in without_hints if row.pop("repetition") == 0]
    rows.sort(key=lambda row: (row["question_id"], row["control"]))
    return {"controls": contracts.table("controls").from_rows(rows)}


def control_prompts(
    questions: pa.Table, descriptions: pa.Table, hints: Mapping[str, Sequence[str]], size: int, seed: str
) -> Iterator[tuple[dict[str, Any], str, Prompt]]:
    """Yield the row of ``questions``, the control and the prompt, for ``size`` described questions.

    ``hints``: of each question. A question without another one that has other gold answers has no ``other hints``.
    """
    prompts = prompts_without_hints(questions, descriptions)
    rows = [row for row in questions.to_pylist() if row["question_id"] in prompts]
    rows.sort(key=lambda row: draw(row["question_id"], f"{seed}/controls"))
    gold = [{normalize_answer(answer) for answer in row["answers"]} for row in rows]
    for at, row in enumerate(rows[:size]):
        name, own = row["question_id"], tuple(hints[row["question_id"]])
        words = " ".join(own).split()
        order = sorted(range(len(words)), key=lambda place: draw(f"{name}/{place}", f"{seed}/words"))
        shuffled = " ".join(words[place] for place in order)
        yield row, "no question", Prompt(name, "", own)
        yield row, "shuffled words", replace(prompts[name], hints=(shuffled,))
        others = (rows[one] for one in (*range(at + 1, len(rows)), *range(at)) if not gold[one] & gold[at])
        if other := next(others, None):
            yield row, "other hints", replace(prompts[name], hints=tuple(hints[other["question_id"]]))

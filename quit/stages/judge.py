"""Judge: a verdict on each distinct answer (paper, section 3.2.2)."""

from __future__ import annotations

import pyarrow as pa

import schemas
from quit.evaluate.normalize import normalize_answer
from quit.models.judges import rule
from quit.models.protocols import Judge, JudgeItem
from quit.stages.stage import Context, Tables, stage


@stage("judge", outputs=("verdicts", "second_verdicts"), sections=("judge.name",), models=("judge",))
def judge_stage(context: Context, questions: pa.Table, answers: pa.Table) -> Tables:
    """One verdict on each distinct answer."""
    second = context.models.second_judge
    return {
        "verdicts": judge_answers(questions, answers, context.models.judge),
        "second_verdicts": judge_answers(questions, answers, second)
        if second
        else schemas.table("second_verdicts").from_rows([]),
    }


def judge_answers(questions: pa.Table, answers: pa.Table, judge: Judge) -> pa.Table:
    """Return the table ``verdicts``: each distinct (question, normalised answer) is judged once.

    ``answers``: those of all readers. The surface form shown to the judge is the most frequent one (ties:
    alphabetical).
    """
    counts = answers.group_by(["question_id", "answer"]).aggregate([([], "count_all")]).to_pylist()
    forms: dict[tuple[str, str], list[tuple[int, str]]] = {}
    for row in counts:
        form = (row["question_id"], normalize_answer(row["answer"]))
        forms.setdefault(form, []).append((-row["count_all"], row["answer"]))
    asked = {row["question_id"]: row for row in questions.to_pylist()}
    keys = sorted(forms)
    items = [
        JudgeItem(
            identity, asked[identity]["question"], tuple(asked[identity]["answers"]), min(forms[identity, key])[1]
        )
        for identity, key in keys
    ]
    rows = []
    for (identity, answer_key), item, ruling in zip(keys, items, rule(items, judge), strict=True):
        rows.append(
            {
                "question_id": identity,
                "answer_key": answer_key,
                "answer": item.candidate,
                "correct": ruling.verdict.correct,
                "probability": ruling.verdict.probability,
                "basis": ruling.basis,
                "passages": -sum(count for count, _ in forms[identity, answer_key]),
                "judge": judge.name,
                "producer": judge.identity,
                "raw": ruling.verdict.raw,
            }
        )
    return schemas.table("verdicts").from_rows(rows)

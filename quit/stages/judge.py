"""Judge: a verdict on each distinct answer (paper, section 3.2.2)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import pyarrow as pa

from quit import contracts
from quit.models.judges import rule
from quit.models.protocols import Judge, JudgeItem
from quit.stages.labelling.answers import Answers, answers_of
from quit.stages.selection.strategy import labelling_strategy
from quit.stages.stage import Context, RowsOf, Tables, stage


@stage("judge", outputs=("verdicts", "second_verdicts"), sections=("judge.name",), models=("judge",))
def judge_stage(context: Context, questions: pa.Table, answers: RowsOf, distinct_answers: RowsOf) -> Tables:
    """One verdict on each distinct answer."""
    second, strategy = context.models.second_judge, labelling_strategy(context.settings)
    by_reader = [answers_of(name, answers, distinct_answers) for name in strategy.readers]
    return {
        "verdicts": judge_answers(questions, by_reader, context.models.judge, strategy.in_turn),
        "second_verdicts": judge_answers(questions, by_reader, second, strategy.in_turn)
        if second
        else contracts.table("second_verdicts").from_rows([]),
    }


def judge_answers(questions: pa.Table, answers: Sequence[Answers], judge: Judge, by_wave: bool = False) -> pa.Table:
    """Return the table ``verdicts``: each distinct (question, normalised answer) is judged once.

    ``answers``: those of all readers. The surface form shown to the judge is the most frequent one (ties:
    alphabetical): of all readers, or of the first reader that gave the answer (``by_wave``), so that the verdict is the
    same whatever later readers say.
    """
    forms: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    passages: Counter[tuple[str, str]] = Counter()
    for of_reader in answers:
        fixed = frozenset(forms) if by_wave else frozenset()
        columns = (of_reader.distinct.column(name).to_pylist() for name in ("question_id", "answer_key", "answer"))
        for question_id, answer_key, answer, count in zip(*columns, of_reader.counts.tolist(), strict=True):
            key = question_id, answer_key
            passages[key] += count
            if count and key not in fixed:
                forms[key][answer] += count
    row_of = {row["question_id"]: row for row in questions.to_pylist()}
    keys = sorted(forms)
    items = [
        JudgeItem(
            identity,
            row_of[identity]["question"],
            tuple(row_of[identity]["answers"]),
            _most_frequent(forms[identity, key]),
        )
        for identity, key in keys
    ]
    rulings = rule(items, judge)
    rows = []
    for place, (identity, answer_key) in enumerate(keys):
        item, ruling = items[place], rulings[place]
        rows.append(
            {
                "question_id": identity,
                "answer_key": answer_key,
                "answer": item.candidate,
                "correct": ruling.verdict.correct,
                "probability": ruling.verdict.probability,
                "basis": ruling.basis,
                "passages": passages[identity, answer_key],
                "judge": judge.name,
                "producer": judge.identity,
                "raw": ruling.verdict.raw,
                "note": ruling.verdict.note,
            }
        )
    return contracts.table("verdicts").from_rows(rows)


def _most_frequent(counts: Mapping[str, int]) -> str:
    return min(counts, key=lambda form: (-counts[form], form))

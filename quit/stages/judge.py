"""Judge: a verdict on each distinct answer (paper, section 3.2.2)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from quit import contracts
from quit.common.rows import Row, tuples
from quit.models.judges import rule
from quit.models.protocols import Judge, JudgeItem
from quit.stages.labelling.answers import Answers, answers_of
from quit.stages.labelling.strategy import LabellingStrategy
from quit.stages.stage import Context, LazyTable, Tables, stage


@dataclass(frozen=True)
class DistinctAnswers:
    """The distinct answers to judge, by question and key, and how many passages gave each."""

    keys: list[str]
    items: list[JudgeItem]
    passages: list[int]

    @classmethod
    def of(cls, questions: pa.Table, answers: Sequence[Answers], first_reader_wins: bool) -> DistinctAnswers:
        forms: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        passages: Counter[tuple[str, str]] = Counter()
        for of_reader in answers:
            fixed = frozenset(forms) if first_reader_wins else frozenset()
            distinct = tuples(of_reader.distinct, "question_id", "answer_key", "answer")
            for (question_id, answer_key, answer), count in zip(distinct, of_reader.counts.tolist(), strict=True):
                key = question_id, answer_key
                passages[key] += count
                if count and key not in fixed:
                    forms[key][answer] += count
        return cls._with_forms(questions, {key: _most_frequent(forms[key]) for key in forms}, passages)

    @classmethod
    def judged(cls, questions: pa.Table, verdicts: pa.Table) -> DistinctAnswers:
        """Return the answers that have verdicts, in the forms that were judged."""
        rows = [*tuples(verdicts, "question_id", "answer_key", "answer", "passages")]
        forms = {(question_id, key): form for question_id, key, form, _ in rows}
        return cls._with_forms(questions, forms, {row[:2]: row[3] for row in rows})

    @classmethod
    def _with_forms(
        cls, questions: pa.Table, forms: Mapping[tuple[str, str], str], passages: Mapping[tuple[str, str], int]
    ) -> DistinctAnswers:
        row_of = {row[0]: row[1:] for row in tuples(questions, "question_id", "question", "answers")}
        keys = sorted(forms)
        items = [JudgeItem(key[0], row_of[key[0]][0], tuple(row_of[key[0]][1]), forms[key]) for key in keys]
        return cls([key for _, key in keys], items, [passages[key] for key in keys])

    def rows(self, judge: Judge) -> list[Row]:
        """Return the rows of ``verdicts`` that hold a judge's rulings."""
        rulings = rule(self.items, judge)
        return [
            {
                "question_id": item.question_id,
                "answer_key": answer_key,
                "answer": item.candidate,
                "correct": ruling.verdict.correct,
                "probability": ruling.verdict.probability,
                "basis": ruling.basis,
                "passages": passages,
                "judge": judge.name,
                "producer": judge.identity,
                "raw": ruling.verdict.raw,
                "note": ruling.verdict.note,
            }
            for answer_key, item, passages, ruling in zip(self.keys, self.items, self.passages, rulings, strict=True)
        ]


def answers_to_judge(
    context: Context, questions: pa.Table, answers: LazyTable, distinct_answers: LazyTable
) -> DistinctAnswers:
    """Return the distinct answers of all readers."""
    strategy = LabellingStrategy(context.settings)
    by_reader = [answers_of(name, answers, distinct_answers) for name in strategy.readers]
    return DistinctAnswers.of(questions, by_reader, strategy.in_turn)


@stage(
    "judge",
    before=answers_to_judge,
    outputs=("verdicts", "second_verdicts"),
    sections=("judge.name",),
    models=("judge",),
    also=lambda settings, _: LabellingStrategy(settings).judge_parts(),
    version=2,
)
def judge_stage(context: Context, answers: DistinctAnswers) -> Tables:
    """One verdict on each distinct answer."""
    judge, second = context.models.judge, context.models.second_judge
    return {
        "verdicts": contracts.table("verdicts").from_rows(answers.rows(judge)),
        "second_verdicts": contracts.table("second_verdicts").from_rows(answers.rows(second) if second else []),
    }


def judge_answers(
    questions: pa.Table, answers: Sequence[Answers], judge: Judge, first_reader_wins: bool = False
) -> pa.Table:
    """Return the table ``verdicts``: each distinct (question, answer's key) is judged once.

    ``answers``: those of all readers. The surface form shown to the judge is the most frequent one (ties:
    alphabetical): of all readers, or of the first reader that gave the answer (``first_reader_wins``), so that the
    verdict is the same whatever later readers say.
    """
    judged = DistinctAnswers.of(questions, answers, first_reader_wins)
    return contracts.table("verdicts").from_rows(judged.rows(judge))


def _most_frequent(counts: Mapping[str, int]) -> str:
    return min(counts, key=lambda form: (-counts[form], form))

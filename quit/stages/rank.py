"""Rank: hints by convergence, and those that make the passages (paper, section 3.1.2; Mozafari et al. 2024,
TriviaHG).

Convergence says how far a hint narrows the candidate answers. A source's own value is used where it has one; else it
follows from the source's 0/1 scores; else a model values the hints of the question.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc

from quit import contracts
from quit.common.rows import Row, grouped, tuples
from quit.models.convergence_scored import LLMConvergence, source_convergence
from quit.models.limits import ENCODER, note
from quit.models.protocols import CandidateSource, ConvergenceModel, HintSet
from quit.settings import Convergence
from quit.stages.labelling.design import check_hint_counts
from quit.stages.questions.candidates import candidate_pool
from quit.stages.questions.question_type import Typed, question_types
from quit.stages.stage import Context, Tables, stage

_NONE_DRAWN = contracts.table("drawn_candidates").schema.empty_table()


@stage(
    "rank",
    whole=("questions",),
    outputs=("ranked_hints", "drawn_candidates"),
    sections=("convergence", "passages.hints", "question_type"),
    models=("convergence", "candidates", "question_types", "equivalence", "encoder"),
    version=2,
)
def rank_stage(
    context: Context,
    questions: pa.Table,
    hints: pa.Table,
    usable_hints: pa.Table,
    candidates: pa.Table,
    scores: pa.Table,
    leak_findings: pa.Table,
) -> Tables:
    """Order hints by convergence and keep the best (``passages.hints``)."""
    models, settings = context.models, context.settings
    if settings.passages.is_given:
        return {**rank_given(questions, hints, leak_findings), "drawn_candidates": _NONE_DRAWN}
    check_hint_counts(usable_hints["question_id"], settings.passages)  # before any model is asked
    valuation = Valuation(
        models.convergence,
        lambda rows: question_types(rows, models.question_types, settings.question_type),
        lambda: candidate_pool(context.whole["questions"], models, settings),
        settings.convergence,
    )
    return rank_hints(questions, hints, usable_hints, candidates, scores, valuation, settings.passages.most_hints)


def rank_given(questions: pa.Table, passages: pa.Table, leak_findings: pa.Table) -> dict[str, pa.Table]:
    """Return the table ``ranked_hints`` of given passages, all selected, in the order of their source: by its ranks
    where it has some.

    In place of convergence they have the highest probability that the passage contains a gold answer (1: by rules),
    with the method that found it as producer (``exact``, ``equivalence``, ...; ``none``).
    """
    contains: dict[str, tuple[float, str]] = {}
    columns = ("hint_id", "probability", "method", "overridden")
    for hint_id, probability, method, is_overridden in tuples(leak_findings, *columns):  # the most certain first
        if not is_overridden:
            contains.setdefault(hint_id, (probability, method))
    text_of, rows, places = dict(tuples(questions, "question_id", "question")), [], Counter[str]()
    in_order = sorted(passages.to_pylist(), key=lambda row: (row["question_id"], row["rank"] is None, row["rank"] or 0))
    for passage in in_order:
        question_id, text = passage["question_id"], passage["hint"]
        value, producer = contains.get(passage["hint_id"], (0.0, "none"))
        rank = places[question_id]
        places[question_id] += 1
        row = {"question_id": question_id, "rank": rank, "hint_id": passage["hint_id"], "hint": text}
        unread = note(f"{text_of[question_id]} {text}", [("passage", text, ENCODER)])
        rows.append(row | {"convergence": value, "producer": producer, "selected": True, "note": unread})
    return {"ranked_hints": contracts.table("ranked_hints").from_rows(rows)}


@dataclass(frozen=True)
class Valuation:
    """What values the hints whose source says nothing: a model, by the types of a table of questions, and candidates
    from the ``pool`` of the whole collection; each is called only where it is needed."""

    model: ConvergenceModel
    types: Callable[[pa.Table], Sequence[Typed]]
    pool: Callable[[], CandidateSource]
    settings: Convergence


def rank_hints(
    questions: pa.Table,
    hints: pa.Table,
    usable_hints: pa.Table,
    candidates: pa.Table,
    scores: pa.Table,
    valuation: Valuation,
    max_hints: int,
) -> Tables:
    """Return the tables ``ranked_hints``, of the questions with usable hints, and ``drawn_candidates``.

    The first ``max_hints`` hints of a question are selected. Ties are broken by the shorter hint, then by source order.
    """
    model, settings = valuation.model, valuation.settings
    usable = set(usable_hints.column("hint_id").to_pylist())
    by_question = _by_question(hint for hint in hints.to_pylist() if hint["hint_id"] in usable)
    usable_questions = [question for question in questions.to_pylist() if question["question_id"] in by_question]
    hints_to_rank = [hint for question in usable_questions for hint in by_question[question["question_id"]]]
    values = published(hints_to_rank, scores, settings)
    drawn_candidates, unread = _add_computed(values, questions, by_question, hints_to_rank, candidates, valuation)
    has_notes = settings.method != "llm" or isinstance(model, LLMConvergence)
    rows = []
    for question in usable_questions:
        hints_of = by_question[question["question_id"]]
        ranked = sorted(hints_of, key=lambda hint: (-values[hint["hint_id"]][0], len(hint["hint"]), hint["position"]))
        text = " ".join([question["question"], *(hint["hint"] for hint in ranked)])
        for rank, hint in enumerate(ranked):
            value, producer = values[hint["hint_id"]]
            hint_note = None
            if has_notes and producer == model.identity:
                hint_note = _note(unread.get(hint["hint_id"]), question["question"], hint["hint"], text)
            rows.append(
                {
                    "question_id": question["question_id"],
                    "rank": rank,
                    "hint_id": hint["hint_id"],
                    "hint": hint["hint"],
                    "convergence": value,
                    "producer": producer,
                    "selected": rank < max_hints,
                    "note": hint_note,
                }
            )
    return {
        "ranked_hints": contracts.table("ranked_hints").from_rows(rows),
        "drawn_candidates": contracts.table("drawn_candidates").from_rows(drawn_candidates),
    }


def _note(unread: int | None, question: str, hint: str, text: str) -> str | None:
    """Return how many verdicts a language model did not give (``unread``, None where none was asked), or why the
    encoder cannot read all of ``text`` (question and hints); None where it can."""
    if unread is not None:
        return f"{unread} candidates without a readable Yes or No" if unread else None
    return note(text, [("question", question, ENCODER), ("hint", hint, ENCODER)])


def published(hints: Sequence[Row], scores: pa.Table, settings: Convergence) -> dict[str, tuple[float, str]]:
    """Return hint id -> (convergence, producer) of the hints whose source says it, or gives scores."""
    scores_of: dict[str, list[int]] = grouped(tuples(scores.sort_by("position"), "hint_id", "score"))
    values = (
        (hint["hint_id"], source_convergence(hint["convergence"], scores_of.get(hint["hint_id"], ()), settings))
        for hint in hints
    )
    return {hint_id: value for hint_id, value in values if value is not None}


def _add_computed(
    values: dict[str, tuple[float, str]],
    questions: pa.Table,
    by_question: Mapping[str, list[Row]],
    hints: Sequence[Row],
    candidates: pa.Table,
    valuation: Valuation,
) -> tuple[list[Row], dict[str, int]]:
    """Have the model value the hints without a value, each together with all hints of its question.

    Returns the candidates drawn for it, and of a language model hint id -> candidates without a score.
    """
    model = valuation.model
    unvalued = pa.array(sorted({hint["question_id"] for hint in hints if hint["hint_id"] not in values}), pa.string())
    unvalued_questions = questions.filter(pc.is_in(questions.column("question_id"), unvalued))
    distractors, candidate_rows = _distractors(unvalued_questions, candidates, valuation.pool)
    items = [
        HintSet(
            question["question"],
            tuple(hint["hint"] for hint in by_question[question["question_id"]]),
            question["answers"][0],
            tuple(distractors[question["question_id"]][: valuation.settings.candidate_cap - 1]),
            typed.coarse,
        )
        for question, typed in zip(unvalued_questions.to_pylist(), valuation.types(unvalued_questions), strict=True)
    ]
    names = unvalued_questions.column("question_id").to_pylist()
    hint_ids = [hint["hint_id"] for name in names for hint in by_question[name]]
    computed: list[list[float]] = []
    unread: list[list[int]] = []
    if items and isinstance(model, LLMConvergence):
        computed, unread = model.counted(items)
    elif items:
        computed = model.values(items)
    for hint_id, value in zip(hint_ids, chain.from_iterable(computed), strict=True):
        values.setdefault(hint_id, (value, model.identity))
    return candidate_rows, dict(zip(hint_ids, chain.from_iterable(unread), strict=False))


def _distractors(
    questions: pa.Table, candidates: pa.Table, pool: Callable[[], CandidateSource]
) -> tuple[dict[str, list[str]], list[Row]]:
    """Return question id -> wrong answers, and the rows of ``drawn_candidates`` for questions whose source has none."""
    candidates_of = _by_question(candidate for candidate in candidates.to_pylist() if not candidate["is_gold"])
    rows = questions.to_pylist()
    bare = [row for row in rows if row["question_id"] not in candidates_of]
    rows_of_pool = drawn_rows(bare, pool()) if bare else []
    pool_of = _by_question(rows_of_pool)
    distractors = {
        name: [candidate["candidate"] for candidate in candidates_of.get(name) or pool_of.get(name, [])]
        for name in (row["question_id"] for row in rows)
    }
    return distractors, rows_of_pool


def drawn_rows(questions: Sequence[Row], pool: CandidateSource) -> list[Row]:
    """Return the rows of ``drawn_candidates`` for rows of ``questions``."""
    return [
        {
            "question_id": question["question_id"],
            "position": position,
            "candidate": candidate.candidate,
            "fine": candidate.fine,
            "similarity": candidate.similarity,
            "producer": pool.identity,
        }
        for question, candidates in zip(questions, pool.draw(questions), strict=True)
        for position, candidate in enumerate(candidates)
    ]


def _by_question(rows: Iterable[Row]) -> dict[str, list[Row]]:
    return grouped((row["question_id"], row) for row in rows)

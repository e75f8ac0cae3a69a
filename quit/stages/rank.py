"""Rank: hints by convergence, and the five that make the passages (paper, section 3.1.2; Mozafari et al. 2024,
TriviaHG).

Convergence says how far a hint narrows the candidate answers. A source's own value is used where it has one; else it
follows from the source's 0/1 scores; else a model values the hints of the question.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import schemas
from quit.models.depth import ENCODER, note
from quit.models.protocols import ConvergenceModel, Encoder, HintPair, HintScorer, HintSet
from quit.settings import Convergence
from quit.stages.candidates import CandidateSource
from quit.stages.question_type import Typed, question_types
from quit.stages.stage import Context, Tables, stage

VERSION = 2


def convergence(distractor_scores: Sequence[int], gold_score: int, candidate_cap: int = 11) -> float:
    """Return the convergence of a hint from 0/1 scores (does it refer to this candidate?), 0 to 1, two decimals.

    Of the distractors the first ``candidate_cap - 1`` count; the gold answer is the last of the n candidates.
    0 if the hint does not refer to the gold answer, else 1 - (sum(scores) - 1) / n.
    """
    if not gold_score:
        return 0.0
    counted = list(distractor_scores)[: candidate_cap - 1]
    n = len(counted) + 1
    return round(1 - sum(counted) / n, 2)


@stage(
    "rank",
    whole=("questions",),
    outputs=("ranked_hints", "drawn_candidates", "rejects"),
    sections=("convergence", "question_type"),
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
) -> Tables:
    """Order hints by convergence and keep five."""
    models, settings = context.models, context.settings
    return rank_hints(
        questions,
        hints,
        usable_hints,
        candidates,
        scores,
        models.convergence,
        lambda asked: question_types(asked, models.question_types, settings.question_type),
        lambda: models.candidate_pool(context.whole["questions"]),
        settings.convergence,
    )


def rank_hints(
    questions: pa.Table,
    hints: pa.Table,
    usable_hints: pa.Table,
    candidates: pa.Table,
    scores: pa.Table,
    model: ConvergenceModel,
    types: Callable[[pa.Table], Sequence[Typed]],
    pool: Callable[[], CandidateSource],
    settings: Convergence,
) -> dict[str, pa.Table]:
    """Return the tables ``ranked_hints``, ``drawn_candidates`` and ``rejects``.

    ``model`` values the hints whose source says nothing. ``types`` gives the types of a table of questions, and
    ``pool`` the candidates of the whole collection; each is called only where it is needed. Ties are broken by the
    shorter hint, then by source order.
    """
    usable = set(usable_hints.column("hint_id").to_pylist())
    by_question = _group(hint for hint in hints.to_pylist() if hint["hint_id"] in usable)
    kept, rejects = _with_enough_hints(questions.to_pylist(), by_question, settings.hints)
    kept_hints = [hint for question in kept for hint in by_question[question["question_id"]]]
    values = _published(kept_hints, scores, settings)
    drawn, unread = _add_computed(values, questions, by_question, kept_hints, candidates, model, types, pool, settings)
    rows = []
    for question in kept:
        ranked = sorted(
            by_question[question["question_id"]],
            key=lambda hint: (-values[hint["hint_id"]][0], len(hint["hint"]), hint["position"]),
        )
        text = " ".join([question["question"], *(hint["hint"] for hint in ranked)])
        for rank, hint in enumerate(ranked):
            value, producer = values[hint["hint_id"]]
            rows.append(
                {
                    "question_id": question["question_id"],
                    "rank": rank,
                    "hint_id": hint["hint_id"],
                    "hint": hint["hint"],
                    "convergence": value,
                    "producer": producer,
                    "selected": rank < settings.hints,
                    "note": _note(unread.get(hint["hint_id"]), question["question"], hint["hint"], text)
                    if producer == model.identity and (settings.method != "llm" or isinstance(model, Scored))
                    else None,
                }
            )
    return {
        "ranked_hints": schemas.table("ranked_hints").from_rows(rows),
        "drawn_candidates": schemas.table("drawn_candidates").from_rows(drawn),
        "rejects": schemas.table("rejects").from_rows(rejects),
    }


def _note(unread: int | None, question: str, hint: str, text: str) -> str | None:
    """Return how many verdicts a language model did not give (``unread``, None where none was asked), or why the
    encoder was out of its depth on ``text`` (question and hints); None where all is well."""
    if unread is not None:
        return f"{unread} candidates without a readable Yes or No" if unread else None
    return note(text, [("question", question, ENCODER), ("hint", hint, ENCODER)])


def _with_enough_hints(
    questions: Sequence[dict], by_question: Mapping[str, list[dict]], needed: int
) -> tuple[list[dict], list[dict]]:
    """Return the questions with enough usable hints, and the rejects. Those without any were rejected by the leakage
    filter."""
    kept, rejects = [], []
    for question in questions:
        count = len(by_question.get(question["question_id"], []))
        if count >= needed:
            kept.append(question)
        elif count:
            identity = {"question_id": question["question_id"], "source": question["source"]}
            detail = f"{count} usable hints, {needed} are needed"
            rejects.append(
                {"stage": "rank", "kind": "question", "reason": "too_few_hints", "detail": detail, **identity}
            )
    return kept, rejects


def _published(hints: Sequence[dict], scores: pa.Table, settings: Convergence) -> dict[str, tuple[float, str]]:
    """Return hint id -> (convergence, producer) of the hints whose source says it, or gives scores."""
    scores_of: dict[str, list[dict]] = {}
    for score in scores.to_pylist():
        scores_of.setdefault(score["hint_id"], []).append(score)
    known = ((hint["hint_id"], _from_source(hint, scores_of.get(hint["hint_id"], []), settings)) for hint in hints)
    return {hint_id: value for hint_id, value in known if value is not None}


def _add_computed(
    values: dict[str, tuple[float, str]],
    questions: pa.Table,
    by_question: Mapping[str, list[dict]],
    hints: Sequence[dict],
    candidates: pa.Table,
    model: ConvergenceModel,
    types: Callable[[pa.Table], Sequence[Typed]],
    pool: Callable[[], CandidateSource],
    settings: Convergence,
) -> tuple[list[dict], dict[str, int]]:
    """Have the model value the hints without a value, each beside all hints of its question.

    Returns the candidates drawn for it, and of a language model hint id -> candidates without a score.
    """
    unvalued = {hint["question_id"] for hint in hints if hint["hint_id"] not in values}
    asked = questions.filter(pc.is_in(questions.column("question_id"), pa.array(sorted(unvalued), pa.string())))
    rivals, drawn = _rivals(asked, candidates, pool)
    items = [
        HintSet(
            question["question"],
            tuple(hint["hint"] for hint in by_question[question["question_id"]]),
            question["answers"][0],
            tuple(rivals[question["question_id"]][: settings.candidate_cap - 1]),
            typed.coarse,
        )
        for question, typed in zip(asked.to_pylist(), types(asked), strict=True)
    ]
    asked_hints = [hint["hint_id"] for name in asked.column("question_id").to_pylist() for hint in by_question[name]]
    computed: list[list[float]] = []
    unread: list[list[int]] = []
    if items and isinstance(model, Scored):
        computed, unread = model.counted(items)
    elif items:
        computed = model.values(items)
    for hint_id, value in zip(asked_hints, chain.from_iterable(computed), strict=True):
        values.setdefault(hint_id, (value, model.identity))
    return drawn, dict(zip(asked_hints, chain.from_iterable(unread), strict=False))


def _rivals(
    questions: pa.Table, candidates: pa.Table, pool: Callable[[], CandidateSource]
) -> tuple[dict[str, list[str]], list[dict]]:
    """Return question id -> wrong answers, and the rows of ``drawn_candidates`` for questions whose source has none."""
    candidates_of = _group(candidate for candidate in candidates.to_pylist() if not candidate["is_gold"])
    rows = questions.to_pylist()
    bare = [row for row in rows if row["question_id"] not in candidates_of]
    drawn = drawn_rows(bare, pool()) if bare else []
    drawn_of = _group(drawn)
    rivals = {
        row["question_id"]: [
            candidate["candidate"]
            for candidate in candidates_of.get(row["question_id"]) or drawn_of.get(row["question_id"], [])
        ]
        for row in rows
    }
    return rivals, drawn


def drawn_rows(questions: Sequence[Mapping[str, Any]], pool: CandidateSource) -> list[dict]:
    """Return the rows of ``drawn_candidates`` for rows of ``questions``."""
    return [
        {
            "question_id": question["question_id"],
            "position": position,
            "candidate": drawn.candidate,
            "fine": drawn.fine,
            "similarity": drawn.similarity,
            "producer": pool.identity,
        }
        for question, candidates in zip(questions, pool.draw(questions), strict=True)
        for position, drawn in enumerate(candidates)
    ]


def _from_source(hint: dict, scores: list[dict], settings: Convergence) -> tuple[float, str] | None:
    if not settings.prefer_source:
        return None
    if hint["convergence"] is not None:
        return float(hint["convergence"]), "source"
    if scores:
        *distractors, gold = sorted(scores, key=lambda score: score["position"])
        return convergence(
            [score_row["score"] for score_row in distractors], gold["score"], settings.candidate_cap
        ), "source-scores"
    return None


class Scored:
    """Convergence by the paper's formula, from a scorer that is asked about each (hint, candidate) pair. A pair
    without a score counts as "does not refer"."""

    def __init__(self, scorer: HintScorer, settings: Convergence, refers_from: float = 0.5) -> None:
        self._scorer = scorer
        self._settings = settings
        self._refers_from = refers_from
        self.identity = f"scored/{VERSION}/from={refers_from:g}+{scorer.identity}"

    def values(self, items: Sequence[HintSet]) -> list[list[float]]:
        """Return the convergence of each hint of each question, 0 to 1."""
        return self.counted(items)[0]

    def counted(self, items: Sequence[HintSet]) -> tuple[list[list[float]], list[list[int]]]:
        """Return the convergence of each hint of each question, 0 to 1, and its distinct candidates without a score."""
        pairs = [
            HintPair(item.question, hint, answer)
            for item in items
            for hint in item.hints
            for answer in (*item.distractors, item.gold)
        ]
        scores = iter(self._scorer.score(pairs).tolist())
        cap = self._settings.candidate_cap
        values: list[list[float]] = []
        unread: list[list[int]] = []
        for item in items:
            rows = [[(answer, next(scores)) for answer in (*item.distractors, item.gold)] for _ in item.hints]
            refers = [[int(score >= self._refers_from) for _, score in row] for row in rows]
            values.append([convergence(row[:-1], row[-1], cap) for row in refers])
            unread.append([len({answer for answer, score in row if math.isnan(score)}) for row in rows])
        return values, unread


class SimilarityConvergence:
    """The plain stand-in: a hint may refer to every candidate that is about as near to it as the gold answer.

    A hint to which most candidates are nearer than the gold answer does not refer to it at all: its convergence is 0.
    """

    def __init__(self, encoder: Encoder, settings: Convergence) -> None:
        self._encoder = encoder
        self._settings = settings
        self.identity = f"similarity/{VERSION}/margin={settings.margin:g}+{encoder.identity}"

    def values(self, items: Sequence[HintSet]) -> list[list[float]]:
        """Return the convergence of each hint of each question, 0 to 1; 0 where there is no distractor to tell
        apart."""
        self._encoder.encode([text for item in items for text in (*item.hints, *item.distractors, item.gold)])
        return [self._values(item) for item in items]

    def _values(self, item: HintSet) -> list[float]:
        if not item.distractors:
            return [0.0] * len(item.hints)
        near = self._encoder.encode(list(item.hints)) @ self._encoder.encode([*item.distractors, item.gold]).T
        rivals, own = near[:, :-1], near[:, -1:]
        refers = own >= np.median(rivals, axis=1, keepdims=True)
        scores = np.hstack([rivals >= own - self._settings.margin, refers]).astype(int).tolist()
        return [convergence(row[:-1], row[-1], self._settings.candidate_cap) for row in scores]


def _group(rows) -> dict[str, list[dict]]:
    groups: dict[str, list[dict]] = {}
    for row in rows:
        groups.setdefault(row["question_id"], []).append(row)
    return groups

"""Rank: hints by convergence, and the five that make the passages (paper, section 3.1.2; Mozafari et al. 2024, TriviaHG).

Convergence says how far a hint narrows the candidate answers. A source's own value is used where it has one; else it follows from
the source's 0/1 scores; else an instrument scores each (hint, candidate) pair.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

import schemas
from quit.evaluate.normalize import normalize_answer
from quit.models.protocols import Encoder
from quit.settings import Convergence

VERSION = 1


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


def rank_hints(
    questions: pa.Table,
    hints: pa.Table,
    usable_hints: pa.Table,
    candidates: pa.Table,
    scores: pa.Table,
    every_answer: Sequence[str],
    encoder: Encoder,
    settings: Convergence,
) -> dict[str, pa.Table]:
    """Return the tables ``ranked_hints`` and ``rejects``.

    ``every_answer``: the gold answers of the whole collection, from which distractors are taken for a question whose source
    has none. Ties are broken by the shorter hint, then by source order.
    """
    usable = set(usable_hints.column("hint_id").to_pylist())
    by_question = _group(hint for hint in hints.to_pylist() if hint["hint_id"] in usable)
    candidates_of = _group(candidates.to_pylist())
    scores_of: dict[str, list[dict]] = {}
    for score in scores.to_pylist():
        scores_of.setdefault(score["hint_id"], []).append(score)
    scorer = SimilarityScorer(encoder, every_answer, settings)
    rows, rejects = [], []
    for question in questions.to_pylist():
        mine = by_question.get(question["question_id"], [])
        if not mine:
            continue  # the leakage filter has rejected it and says so
        if len(mine) < settings.hints:
            detail = f"{len(mine)} usable hints, {settings.hints} are needed"
            identity = {"question_id": question["question_id"], "source": question["source"]}
            rejects.append(
                {"stage": "rank", "kind": "question", "reason": "too_few_hints", "detail": detail, **identity}
            )
            continue
        valued: dict[str, tuple[float, str]] = {}
        unknown = []
        for hint in mine:
            known = _from_source(hint, scores_of.get(hint["hint_id"], []), settings)
            if known is None:
                unknown.append(hint)
            else:
                valued[hint["hint_id"]] = known
        if unknown:
            distractors = [
                one["candidate"] for one in candidates_of.get(question["question_id"], []) if not one["is_gold"]
            ]
            values = scorer.convergence([hint["hint"] for hint in unknown], question["answers"], distractors)
            for hint, value in zip(unknown, values, strict=True):
                valued[hint["hint_id"]] = (value, scorer.identity)
        mine.sort(key=lambda hint: (-valued[hint["hint_id"]][0], len(hint["hint"]), hint["position"]))
        for rank, hint in enumerate(mine):
            value, producer = valued[hint["hint_id"]]
            rows.append(
                {
                    "question_id": question["question_id"],
                    "rank": rank,
                    "hint_id": hint["hint_id"],
                    "hint": hint["hint"],
                    "convergence": value,
                    "producer": producer,
                    "selected": rank < settings.hints,
                }
            )
    return {
        "ranked_hints": schemas.table("ranked_hints").from_rows(rows),
        "rejects": schemas.table("rejects").from_rows(rejects),
    }


def _from_source(hint: dict, scores: list[dict], settings: Convergence) -> tuple[float, str] | None:
    if not settings.prefer_source:
        return None
    if hint["convergence"] is not None:
        return float(hint["convergence"]), "source"
    if scores:
        *distractors, gold = sorted(scores, key=lambda score: score["position"])
        return convergence(
            [one["score"] for one in distractors], gold["score"], settings.candidate_cap
        ), "source-scores"
    return None


class SimilarityScorer:
    """Embedded scoring: a hint may refer to every candidate that is about as near to it as the gold answer.

    A stand-in for asking an LLM about each pair. A hint to which most candidates are nearer than the gold answer does not refer
    to it at all: its convergence is 0.
    """

    def __init__(self, encoder: Encoder, every_answer: Sequence[str], settings: Convergence) -> None:
        self._encoder = encoder
        self._settings = settings
        self._answers = sorted(set(every_answer))
        self.identity = f"similarity/{VERSION}/margin={settings.margin:g}+{encoder.identity}"

    def convergence(self, hints: Sequence[str], gold: Sequence[str], distractors: Sequence[str]) -> list[float]:
        """Return the convergence of each hint, 0 to 1."""
        cap = self._settings.candidate_cap
        others = list(distractors)[: cap - 1] or self.distractors(gold, cap - 1)
        if not others:
            return [0.0] * len(hints)
        near = self._encoder.encode(list(hints)) @ self._encoder.encode([*others, *gold]).T
        rivals, own = near[:, : len(others)], near[:, len(others) :].max(axis=1, keepdims=True)
        refers = (own[:, 0] >= np.median(rivals, axis=1)).astype(int)
        scores = (rivals >= own - self._settings.margin).astype(int)
        return [
            convergence(row.tolist(), gold_score, cap) for row, gold_score in zip(scores, refers.tolist(), strict=True)
        ]

    def distractors(self, gold: Sequence[str], count: int) -> list[str]:
        """Return the ``count`` gold answers of other questions that are nearest to this one's, nearest first."""
        own = {normalize_answer(answer) for answer in gold}
        others = [answer for answer in self._answers if normalize_answer(answer) not in own]
        if not others:
            return []
        near = (self._encoder.encode(others) @ self._encoder.encode(list(gold)).T).max(axis=1)
        return [others[index] for index in np.argsort(-near, kind="stable")[:count]]


def _group(rows) -> dict[str, list[dict]]:
    groups: dict[str, list[dict]] = {}
    for row in rows:
        groups.setdefault(row["question_id"], []).append(row)
    return groups

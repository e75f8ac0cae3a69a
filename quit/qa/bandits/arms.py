"""Requests from a collection: which sub-queries a question has, what they retrieve, what of it is relevant."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np

from quit.common.rows import first_by
from quit.errors import InputError
from quit.qa.bandits.decompose import DecompositionRequest, LLMDecomposition
from quit.qa.bandits.request import Request
from quit.qa.bandits.rewards import normalised
from quit.qa.indexes.built import BuiltCorpus
from quit.qa.opening import Question
from quit.qa.settings.bandits import Bandits
from quit.retrieval.complexity import AnswerHead
from quit.retrieval.protocols import FirstStage, Ranking
from quit.sources.lines import json_lines
from quit.text.normalize import normalize_question

KINDS = ("sub-questions", "two-level", "written")
CONTEXT_DOCUMENTS = 5
"""Documents of the request's own ranking that the decomposition prompts see."""
Vectors = Callable[[Sequence[int]], np.ndarray]
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Decomposition:
    """A question's sub-queries, and which of them each refines (-1: none). ``number``: of the decomposition, from 0."""

    question: Question
    arms: tuple[str, ...]
    parents: tuple[int, ...]
    number: int = 0


def sub_questions(questions: Sequence[Question]) -> list[Decomposition]:
    """Return questions with the source's own decomposition as arms; those without one are left out.

    Raises :class:`InputError` where no question has one.
    """
    decompositions = [
        Decomposition(question, tuple(step.text for step in question.steps), (-1,) * len(question.steps))
        for question in questions
        if question.steps
    ]
    if not decompositions:
        raise InputError(
            "No question of this corpus has sub-questions. Build it from MuSiQue or 2WikiMultihopQA, or let a language "
            "model write them: --arms written."
        )
    return decompositions


def of_file(path: Path, questions: Sequence[Question]) -> list[Decomposition]:
    """Return the arms of a JSONL file: {query_id, arms, parents?} a line; several lines of a question are several
    decompositions of it.

    ``parents``: for each arm the place (from 0) of an earlier one that it refines; null or -1 for none. Lines about
    other questions are left out, and the log says how many. Raises :class:`InputError` for a line that cannot be used,
    and where none is left.
    """
    by_id = {question.query_id: question for question in questions}
    decompositions: list[Decomposition] = []
    numbers, left_out = Counter[str](), 0
    for line, row in json_lines(path, "JSON Lines of arms"):
        name, arms = str(row.get("query_id")), row.get("arms", ())
        texts = isinstance(arms, list) and bool(arms) and all(isinstance(arm, str) and arm.strip() for arm in arms)
        if "query_id" not in row or not texts:
            raise InputError(f"{path}, line {line}: expected {{query_id, arms, parents}}, with arms a list of texts.")
        parents = _parents(row.get("parents"), len(arms), f"{path}, line {line}")
        if name not in by_id:
            left_out += 1
            continue
        decompositions.append(Decomposition(by_id[name], tuple(arms), parents, numbers[name]))
        numbers[name] += 1
    if not decompositions:
        raise InputError(f"{path} has no arms of the {len(by_id)} questions of this corpus that were chosen.")
    if left_out:
        _log.warning("%d lines of %s are about other questions and are left out.", left_out, path)
    return decompositions


def _parents(value: Any, arms: int, where: str) -> tuple[int, ...]:
    """Return each arm's parent, -1 for none."""
    places = []
    if value is None:
        places = [-1] * arms
    elif isinstance(value, list):
        places = [-1 if parent is None else parent for parent in value]
    fits = [type(parent) is int and -1 <= parent < place for place, parent in enumerate(places)]
    if len(fits) != arms or not all(fits):
        raise InputError(
            f"{where}: parents must have an entry for each of the {arms} arms: the place of an earlier one, from 0, or "
            "null."
        )
    return tuple(places)


def two_level(
    decompositions: Sequence[Decomposition], collection: BuiltCorpus, first_stage: FirstStage, settings: Bandits
) -> list[Decomposition]:
    """Return arms refined to K: each sub-question, and below it the sub-question with the title of a document that it
    retrieves.

    No label is looked at: the titles are those of its ranking, best first, each once, dealt to the sub-questions in
    turn until there are K arms or no titles. A title that the sub-question already says, or that is blank, refines
    nothing.
    """
    rankings = iter(first_stage.search([arm for entry in decompositions for arm in entry.arms], settings.documents))
    refinements = []
    for entry in decompositions:
        titles_of = [_titles(arm, next(rankings), collection) for arm in entry.arms]
        arms, parents = list(entry.arms), list(entry.parents)
        for rank in range(max((len(titles) for titles in titles_of), default=0)):
            for parent, titles in enumerate(titles_of):
                if rank < len(titles) and len(arms) < settings.arms:
                    arms.append(f"{entry.arms[parent]} {titles[rank]}")
                    parents.append(parent)
        refinements.append(Decomposition(entry.question, tuple(arms), tuple(parents)))
    return refinements


def _titles(arm: str, ranking: Ranking, collection: BuiltCorpus) -> list[str]:
    """Return the titles of a ranking, best first, each once, without those that the arm names."""
    words, titles = f" {normalize_question(arm)} ", collection.titles(ranking.rows.tolist())
    by_key = first_by((normalize_question(title), title) for title in titles)
    return [title for key, title in by_key.items() if key and f" {key} " not in words]


def llm_decompositions(
    questions: Sequence[Question],
    collection: BuiltCorpus,
    first_stage: FirstStage,
    decomposition: LLMDecomposition,
    settings: Bandits,
) -> list[Decomposition]:
    """Return questions with sub-queries by a language model, which sees the first documents of the question itself:
    one entry per question and decomposition (``settings.decompositions``)."""
    rankings = first_stage.search([question.text for question in questions], CONTEXT_DOCUMENTS)
    asks = [
        DecompositionRequest(question.query_id, question.text, tuple(collection.texts(ranking.rows.tolist())))
        for question, ranking in zip(questions, rankings, strict=True)
    ]
    return [
        Decomposition(question, tuple(arms), (-1,) * len(arms), number)
        for number in range(settings.decompositions)
        for question, arms in zip(questions, decomposition.sub_queries(asks, number), strict=True)
    ]


def requests(
    decompositions: Sequence[Decomposition],
    collection: BuiltCorpus,
    first_stage: FirstStage,
    settings: Bandits,
    *,
    vectors: Vectors | None = None,
    relevance: AnswerHead | Literal["qrels", "scores"] = "qrels",
) -> list[Request]:
    """Return requests: N documents per arm, and their relevance to the whole question.

    A document is relevant (for metrics) where it is so to the question or one of its sub-questions. What policies
    observe is that (``qrels``), the retrieval score scaled to 0..1 (``scores``), or what a head says. A nugget is a
    sub-question; a document that is relevant to the whole question alone is one more nugget. ``vectors``: rows to
    unit vectors, for diversity and heads.
    """
    qrels = collection.relevant_rows()
    rankings = iter(first_stage.search([arm for entry in decompositions for arm in entry.arms], settings.documents))
    bandit_requests = []
    for entry in decompositions:
        shape = (len(entry.arms), settings.documents)
        documents, scores = np.full(shape, -1, dtype=np.int64), np.zeros(shape)
        for arm, ranking in enumerate(islice(rankings, len(entry.arms))):
            documents[arm, : len(ranking)], scores[arm, : len(ranking)] = ranking.rows, ranking.scores
        gold, nuggets = nuggets_of(entry.question, qrels)
        relevant = np.isin(documents, gold) & (documents >= 0)
        request = Request(
            request_id=entry.question.query_id,
            text=entry.question.text,
            arms=entry.arms,
            documents=documents,
            scores=scores,
            observed=relevant.astype(np.float64),
            relevant=relevant,
            parents=np.array(entry.parents, dtype=np.int64),
            gold=gold,
            nuggets=nuggets,
            decomposition=entry.number,
        )
        if vectors is not None and len(request.pool):
            request = replace(request, vectors=vectors(request.pool.tolist()))
        if relevance == "scores":
            request = replace(request, observed=normalised(scores, request.lengths))
        elif relevance != "qrels" and len(request.pool):
            request = replace(request, observed=_head_scores(relevance, request, entry.question, collection))
        bandit_requests.append(request)
    return bandit_requests


def nuggets_of(question: Question, qrels: dict[str, dict[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows relevant to a question, ascending, and which nugget each holds, bool, shape (rows, nuggets)."""
    steps = [{row for row, grade in qrels.get(step.query_id, {}).items() if grade > 0} for step in question.steps]
    relevant = {row for row, grade in qrels.get(question.query_id, {}).items() if grade > 0}
    nugget_rows = [step for step in steps if step]
    nugget_rows += [{row} for row in sorted(relevant - set().union(*steps))]
    gold = np.array(sorted(relevant.union(*steps)), dtype=np.int64)
    nuggets = np.array([[row in nugget for nugget in nugget_rows] for row in gold.tolist()], dtype=bool)
    return gold, nuggets.reshape(len(gold), len(nugget_rows))


def _head_scores(head: AnswerHead, request: Request, question: Question, collection: BuiltCorpus) -> np.ndarray:
    vectors = np.zeros((len(request.pool), 0)) if request.vectors is None else request.vectors
    texts = collection.texts(request.pool.tolist())
    scores = head.scores(question.text, question.answers, texts, vectors)
    return np.where(request.documents >= 0, np.clip(scores[request.pool_positions], 0.0, 1.0), 0.0)

"""Which sub-queries a question has, and which of them refine others."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quit.common.rows import first_by
from quit.errors import InputError
from quit.models.generation import CachedGenerator
from quit.models.prompting import load_prompt
from quit.qa.bandits.decompose import FIELDS, DecompositionRequest, LLMDecomposition
from quit.qa.indexes.built import BuiltCorpus
from quit.qa.opening import Question
from quit.qa.settings import QaSettings
from quit.qa.settings.bandits import Bandits
from quit.retrieval.protocols import FirstStage, Ranking
from quit.sources.lines import json_lines
from quit.text.normalize import normalize_question

KINDS = ("sub-questions", "two-level", "written")
CONTEXT_DOCUMENTS = 5
"""Documents of the request's own ranking that the decomposition prompts see."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Decomposition:
    """A question's sub-queries, and which of them each refines (-1: none). ``number``: of the decomposition, from 0."""

    question: Question
    arms: tuple[str, ...]
    parents: tuple[int, ...]
    number: int = 0


def decompositions_of(
    kind: str,
    questions: Sequence[Question],
    collection: BuiltCorpus,
    first_stage: FirstStage,
    settings: QaSettings,
    generator: CachedGenerator | None,
) -> tuple[list[Decomposition], dict[str, int]]:
    """Return the arms of each question, an entry per decomposition: sub-questions of the source, these in two levels, a
    language model's, or those of the file ``kind``; and what a language model's replies came to
    (:attr:`LLMDecomposition.counts`), empty for other kinds.

    Raises :class:`InputError` where there are none, or the file cannot be used.
    """
    if kind not in KINDS:
        return of_file(Path(kind), questions), {}
    if kind == "written":
        assert generator is not None
        names = (settings.bandits.definitional_prompt, settings.bandits.specialised_prompt)
        prompts = [load_prompt(name, FIELDS) for name in names]
        writer = LLMDecomposition(generator, prompts[0], prompts[1], settings.bandits)
        entries = llm_decompositions(questions, collection, first_stage, writer, settings.bandits)
        return entries, dict(writer.counts)
    parts = sub_questions(questions)
    if len(parts) < len(questions):
        _log.warning("%d of %d questions have no sub-questions: left out.", len(questions) - len(parts), len(questions))
    return parts if kind == "sub-questions" else two_level(parts, collection, first_stage, settings.bandits), {}


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

"""Requests from a corpus: what the sub-queries of a question retrieve, and what of it is relevant."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Literal, NotRequired, TypedDict

import numpy as np

from quit.models.generation import CachedGenerator
from quit.models.prompting import load_prompt
from quit.qa.bandits.arms import Decomposition, decompositions_of
from quit.qa.bandits.request import Request
from quit.qa.bandits.rewards import normalised
from quit.qa.indexes.built import BuiltCorpus
from quit.qa.opening import Opened, Question
from quit.qa.relevance import RELEVANCE_FIELDS, JudgedRelevance, VerdictCounts, YesNo
from quit.qa.settings import QaSettings
from quit.qa.settings.bandits import Bandits
from quit.retrieval.complexity import AnswerHead, ContainedOrNear
from quit.retrieval.protocols import FirstStage

Vectors = Callable[[Sequence[int]], np.ndarray]


class About(TypedDict):
    """What requests were made of: identities, ``arms_from`` (their kind or file), what is ``observed``; and of a
    language model the :attr:`LLMDecomposition.counts` and its verdicts on documents."""

    corpus: str
    first_stage: str
    arms_from: str
    observed: str
    decomposition_replies: NotRequired[dict[str, int]]
    relevance_verdicts: NotRequired[VerdictCounts]


@dataclass(frozen=True)
class Measured:
    """Requests with their questions, in one order; the corpus; ``generator``: the language model, if one is named."""

    requests: list[Request]
    questions: list[Question]
    corpus: BuiltCorpus
    generator: CachedGenerator | None
    about: About


def measure(
    collection: Opened,
    questions: Sequence[Question],
    kind: str,
    relevance: Literal["qrels", "scores", "judge"],
    settings: QaSettings,
    generator: CachedGenerator | None,
    diverse: bool = False,
) -> Measured:
    """Return the requests of some questions. ``kind``: as :func:`decompositions_of` has it. ``relevance``: ``qrels``,
    ``scores``, or ``judge``: the language model, without one whether a document contains an answer or is near one.
    ``diverse``: a policy looks at vectors. Raises as :func:`decompositions_of`."""
    corpus, first_stage = collection.corpus, collection.first_stage
    parts, replies = decompositions_of(kind, questions, corpus, first_stage, settings, generator)
    observed: AnswerHead | Literal["qrels", "scores"]
    if relevance != "judge":
        observed = relevance
    elif generator:
        prompt = load_prompt("document_relevance", RELEVANCE_FIELDS)
        observed = JudgedRelevance(YesNo(generator, prompt, attempts=settings.bandits.attempts))
    else:
        observed = ContainedOrNear(collection.models.encoder)
    vectors = collection.vectors if diverse or isinstance(observed, ContainedOrNear) else None
    bandit_requests = requests(parts, corpus, first_stage, settings.bandits, vectors=vectors, relevance=observed)
    about: About = {
        "corpus": corpus.identity,
        "first_stage": first_stage.identity,
        "arms_from": Path(kind).name,
        "observed": observed if isinstance(observed, str) else observed.identity,
    }
    if replies:
        about["decomposition_replies"] = replies
    if isinstance(observed, JudgedRelevance):
        about["relevance_verdicts"] = observed.judge.counts
    return Measured(bandit_requests, [part.question for part in parts], corpus, generator, about)


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

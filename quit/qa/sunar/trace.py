"""What a run keeps of a question as JSON: everything that was asked, retrieved, sampled and answered."""

from __future__ import annotations

from typing import NotRequired, TypedDict


class Uncertainty(TypedDict, total=False):
    """What answers sampled from a batch say. ``s``: its divisor, by ``sets`` of answers of one meaning, or by
    contradictions among the ``answers``."""

    s: float
    sets: list[list[str]]
    answers: list[str]


class BatchTrace(Uncertainty):
    """Documents that were scored together, best first. ``pool``: ``R`` or ``N``; ``parents``: of a batch of N, the
    scored document that brought each in."""

    pool: str
    documents: list[str]
    scores: list[float]
    rescored: list[float]
    parents: NotRequired[list[str]]


class SearchTrace(TypedDict):
    """``first_stage``: how many documents the first stage had; no ``batches`` where none was scored."""

    first_stage: int
    batches: NotRequired[list[BatchTrace]]


class StepTrace(SearchTrace):
    """A sub-question. ``read``: ids of the documents that were read; ``raw``: the planner's reply, of a plan's step."""

    sub_question: str
    answer: str
    read: list[str]
    raw: NotRequired[str]


class EndTrace(TypedDict):
    """Why a plan ended, and with the planner's own answer, if it gave one."""

    reason: str
    answer: str | None
    raw: str


class ReasonerTrace(TypedDict):
    """The meta reasoner's answer, None where its reply has none, and the ids of what it read."""

    answer: str | None
    raw: str
    evidence: list[str]


class Trace(TypedDict):
    """A question with its relevant documents (id to relevance), its steps, and its answer.

    ``pool``: ids of all documents that were scored, ``evidence``: of those that count, best first. ``prediction_from``:
    ``mer``, ``planner``, ``sub-answer`` or ``nothing``. ``replies``: counts
    (:data:`quit.qa.sunar.reading.COUNTS`).
    """

    query_id: str
    question: str
    answers: list[str]
    kind: str | None
    relevant: dict[str, int]
    planner: str
    steps: list[StepTrace]
    ended: EndTrace
    pool: list[str]
    evidence: list[str]
    mer: ReasonerTrace | None
    prediction: str
    prediction_from: str
    replies: dict[str, int]

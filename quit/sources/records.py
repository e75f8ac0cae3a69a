"""Records of source readers: raw questions of one file, repaired and not yet pooled, and rejects with reasons."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RawHint:
    """One hint of a source record, or one given passage, which has a ``passage_id``; its ``rank`` is the retriever's,
    ``convergence`` the source's own relevance, from 0. ``scores`` maps a candidate answer to 0 or 1, in the source's
    order."""

    text: str
    rank: int | None = None
    convergence: float | None = None
    url: str | None = None
    scores: dict[str, int] | None = None
    passage_id: str | None = None


@dataclass(frozen=True, slots=True)
class RawQuestion:
    """One usable source record: texts are repaired, answers are distinct and not blank, hints may still be too few.
    ``given``: ``hints`` are passages."""

    source: str
    file: str
    position: int
    record_id: str
    question: str
    answers: tuple[str, ...]
    hints: tuple[RawHint, ...]
    candidates: tuple[str, ...] = ()
    coarse: str | None = None
    fine: str | None = None
    difficulty: str | None = None
    given: bool = False


@dataclass(frozen=True, slots=True)
class Reject:
    """Something left out, and why: becomes a row of ``rejects``."""

    stage: str
    kind: str
    reason: str
    detail: str
    source: str | None = None
    file: str | None = None
    position: int | None = None
    record_id: str | None = None
    question_id: str | None = None
    hint_id: str | None = None


@dataclass(frozen=True, slots=True)
class SourceRecord:
    """The result of one position of a file: a question or None, and its rejects (records or single hints)."""

    question: RawQuestion | None
    rejects: tuple[Reject, ...] = ()

"""What the report shows, as JSON-like values, made by :func:`quit.report.data.gather`."""

from __future__ import annotations

from typing import Any, TypedDict

from quit.common.rows import Row
from quit.report.examples import ExampleKind, ExamplePassage
from quit.report.given import GivenFigures
from quit.review.audit import Audit
from quit.review.status import ReviewFigures
from quit.status.judges import Judges
from quit.status.partial import AskedPassages


class Convergence(TypedDict):
    """Hints by convergence (bars: ``low``, ``high``, a count for each of ``groups``), and by producer."""

    bars: list[Row]
    groups: list[str]
    producers: list[Row]


class Leakage(TypedDict):
    """Findings by method and probability, questions by number of leaking hints; ``losses``: in words; ``leaking``:
    questions with a finding, some of which are ``questions``."""

    losses: str | None
    hints: int
    methods: list[Row]
    by_question: list[Row]
    bars: list[Row]
    leaking: int
    questions: list[Row]


class Difficulty(TypedDict):
    """Questions by difficulty: ``bars`` with a count for each bin, and the bins."""

    bars: list[Row]
    bins: list[Row]


class Splits(TypedDict):
    """``labels``: a row for each split with questions, then ``all``; ``shared``: for every two splits (as
    :mod:`quit.evaluate.labels` counts them)."""

    labels: list[Row]
    shared: list[Row]


class Alike(TypedDict):
    """Agreement of readers (:class:`quit.evaluate.labels.ReaderAgreement`); ``right``: passages by the number of
    readers that answer correctly, from none to all (None where not all were asked about every passage)."""

    readers: list[str]
    passages: int
    compared: tuple[str, ...]
    pairs: list[Row]
    alpha: float | None
    right: list[int] | None


class Agreement(TypedDict):
    """Of all readers and of the labelers; None for fewer than two."""

    all: Alike | None
    labelers: Alike | None


class ModelRequests(TypedDict):
    """Requests to language models, a row for each, and what they cost."""

    heads: list[str]
    rows: list[list[Any]]
    costs: list[Row]


class Facts(TypedDict):
    """None or empty where nothing is known. ``convergence``, ``leakage``, ``difficulty``, ``types``: of hints and
    questions."""

    name: str
    date: str | None
    program: str
    profile: str | None
    counts: Row
    design: str
    readers: list[dict[str, str]]
    judge: str
    embedded_labels: str | None
    release: bool
    imported: list[Any]
    rejects: list[Row]
    ways_out: str | None
    sources: list[Row]
    convergence: Convergence
    leakage: Leakage | None
    probe: list[Row]
    types: list[Row]
    difficulty: Difficulty
    splits: Splits
    given: GivenFigures | None
    drawn_from_all: list[Row]
    passage: ExamplePassage | None
    examples: list[ExampleKind]
    funnel: list[tuple[str, int]]
    small_pool: str | None
    statistics: Row | None
    readers_by_hints: list[Row]
    agreement: Agreement
    asked: list[AskedPassages]
    type_agreement: dict[str, int]
    judges: Judges
    review: ReviewFigures | None
    audit: Audit | None
    usage: ModelRequests
    releases: list[Row]

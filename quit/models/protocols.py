"""The protocols that all models implement.

A profile names the implementations; the rest of the code does not depend on which one it has. ``identity`` is part of
the fingerprint of every table that a model makes. It changes whenever the model's replies could change (weights,
prompt, template, sampling), and never otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from quit.common.rows import Row

NO_ANSWER = "NO ANSWER"


class Encoder(Protocol):
    """Texts to vectors.

    Results for a text must not depend on which other texts share its batch: shards of any size have to give the same
    bytes.
    """

    identity: str
    dimension: int

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Return unit vectors, shape (len(texts), dimension), float32."""

    def encode_tokens(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Return for each text the unit vectors of its tokens, shape (tokens, dimension), without [CLS] and [SEP].

        They are float32, rounded to half precision.
        """


@runtime_checkable
class BothEncoder(Encoder, Protocol):
    """An encoder that gives vectors of texts and of their tokens for the price of either."""

    def encode_both(self, texts: Sequence[str]) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Return what ``encode`` and ``encode_tokens`` return."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One equivalence question: does ``candidate`` mean the same as ``reference``, as an answer to ``question``?"""

    question: str
    reference: str
    candidate: str


class Equivalence(Protocol):
    """Answer equivalence (Bulian et al. 2022)."""

    identity: str

    def probability(self, pairs: Sequence[Pair]) -> np.ndarray:
        """Return the probability that each pair is equivalent, shape (len(pairs),), float64 in [0, 1]."""

    def note(self, question: str, gold_answers: Sequence[str], answer: str) -> str | None:
        """Return what the model cannot read properly (:mod:`quit.models.limits`) of an answer's pairs with gold
        answers; None if nothing."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """The input of a reader: a question, and the hints of a passage in reading order (none in the parametric probe).

    ``coarse`` and ``fine`` are the question's type, as the sources write it.
    """

    question_id: str
    question: str
    hints: tuple[str, ...] = ()
    coarse: str | None = None
    fine: str | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """A reader's answer: ``raw`` as the model wrote it, ``answer`` cleaned (or ``NO_ANSWER``).

    ``ended``: ``stop``, ``length`` where the reply was cut, or ``content_filter`` where the vendor withheld it,
    with the vendor's word where that is another.
    """

    raw: str
    answer: str
    ended: str = "stop"


@runtime_checkable
class Reader(Protocol):
    """A model that answers a question from a passage (paper, section 3.2.2)."""

    name: str

    @property
    def identity(self) -> str: ...

    def answer(self, prompts: Sequence[Prompt], sample: int = 0) -> list[Reply]:
        """Return one reply per prompt, in order. ``sample`` numbers repetitions; a deterministic reader ignores it."""


@dataclass(frozen=True, slots=True)
class JudgeItem:
    """One answer to judge against the gold answers of its question."""

    question_id: str
    question: str
    gold_answers: tuple[str, ...]
    candidate: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """``correct`` is None when the judge's reply could not be read (a third state, never a silent no).

    ``probability`` of being correct, if the judge gives one. ``note``: why the model cannot read the pair properly.
    """

    correct: bool | None
    probability: float | None
    raw: str
    note: str | None = None


class Judge(Protocol):
    """Decides whether a generated answer is correct (GPT-Eval, paper figure 3)."""

    name: str
    identity: str

    def verdicts(self, items: Sequence[JudgeItem], sample: int = 0) -> list[Verdict]:
        """Return one verdict per item, in order. ``sample`` numbers repetitions."""


@dataclass(frozen=True, slots=True)
class HintSet:
    """The hints of one question, in order, and the answers between which they have to decide.

    ``gold``: the gold answer; ``distractors``: its rivals in the source's order, at most as many as count.
    ``coarse``: the question's type, as the sources write it.
    """

    question: str
    hints: tuple[str, ...]
    gold: str
    distractors: tuple[str, ...]
    coarse: str | None = None


class ConvergenceModel(Protocol):
    """Says how far hints narrow the candidate answers (paper, section 3.1.2)."""

    identity: str

    def values(self, items: Sequence[HintSet]) -> list[list[float]]:
        """Return the convergence of each hint of each question, in order, 0 to 1.

        They must not depend on the other questions of the call.
        """


@dataclass(frozen=True, slots=True)
class Drawn:
    """A candidate drawn from the collection, with its cosine to the nearest of the question's gold answers."""

    candidate: str
    fine: str
    similarity: float


class CandidateSource(Protocol):
    """Where candidates come from: the collection, or a language model."""

    @property
    def identity(self) -> str:
        """Everything that the candidates depend on."""

    def draw(self, questions: Sequence[Row]) -> list[list[Drawn]]:
        """Return candidates for each row of the table ``questions``, best first."""

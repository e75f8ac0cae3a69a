"""The closed set of answers an embedded reader can give."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from threading import RLock
from typing import Any, TypeAlias, TypeVar

import numpy as np

from quit.common.arithmetic import on_grid
from quit.errors import InputError
from quit.models.answer_vectors import template_vectors, token_vectors
from quit.models.protocols import Encoder
from quit.text.answers import answer_key

K = TypeVar("K")
V = TypeVar("V")
QuestionType: TypeAlias = tuple[str | None, str | None]
"""Coarse and fine, None where it is not known."""

BACKGROUND = 1000
"""How many hint texts of the collection are kept for normalisation statistics."""

FITTING_MINIMUM = 40
"""A type with fewer members than this is too small to guess from: about four questions' candidates."""


def pool_size(answers: Iterable[str]) -> int:
    """Return the number of distinct answers in a pool of these."""
    return len({answer_key(answer) for answer in answers} - {""})


@dataclass(frozen=True, eq=False)
class AnswerPool:
    """Every gold and candidate answer of a collection, without a trace of which is which.

    A gold answer is one anonymous member: members are deduplicated, sorted by key, and carry only their
    surface and the types of the questions they came from. How often or where an answer occurred is forgotten on
    purpose: a gold answer occurs more often than its distractors do.
    """

    answers: tuple[str, ...]
    types: tuple[frozenset[QuestionType], ...]
    background: tuple[str, ...] = ()
    _rows: dict[QuestionType, np.ndarray] = field(default_factory=dict, repr=False)
    _vectors: dict[tuple[str, ...], np.ndarray] = field(default_factory=dict, repr=False)
    _tokens: dict[tuple[str, int], tuple[np.ndarray, np.ndarray]] = field(default_factory=dict, repr=False)
    _lock: Any = field(default_factory=RLock, repr=False)

    @classmethod
    def build(cls, entries: Iterable[tuple[str, str | None, str | None]], hints: Iterable[str] = ()) -> AnswerPool:
        """Build the pool from (answer, coarse, fine) triples: one per gold or candidate answer of each question.

        ``hints`` are hint texts of the collection, a background for normalisation; of more than ``BACKGROUND`` distinct
        ones, those with the smallest hashes are kept, so that the choice depends on nothing but the texts. The order of
        ``entries`` and ``hints`` never matters.
        """
        surfaces: dict[str, str] = {}
        types: dict[str, set[QuestionType]] = {}
        for answer, coarse, fine in entries:
            surface = " ".join(answer.split())
            key = answer_key(surface)
            if not key:
                continue
            surfaces[key] = min(surface, surfaces.get(key, surface))
            types.setdefault(key, set()).add((coarse, fine))
        if not surfaces:
            raise InputError("The answer pool is empty: no question has a gold or candidate answer.")
        keys = sorted(surfaces)
        distinct = sorted({" ".join(hint.split()) for hint in hints} - {""}, key=lambda hint: (_digest(hint), hint))
        return cls(
            answers=tuple(surfaces[key] for key in keys),
            types=tuple(frozenset(types[key]) for key in keys),
            background=tuple(sorted(distinct[:BACKGROUND])),
        )

    @cached_property
    def identity(self) -> str:
        """Content hash: members, their types, the background and the back-off threshold."""
        members = [
            [answer, sorted([coarse or "", fine or ""] for coarse, fine in types)]
            for answer, types in zip(self.answers, self.types, strict=True)
        ]
        content = json.dumps([members, self.background, FITTING_MINIMUM], ensure_ascii=False)
        return f"pool@{_digest(content)[:16]}"

    def rows(self, coarse: str | None, fine: str | None) -> np.ndarray:
        """Return the rows of ``answers`` that fit a question's type, shape (members,), ascending, int64.

        The fine type where it has at least :data:`FITTING_MINIMUM` members, else the coarse one where it has, else the
        pool.
        """

        def fitting() -> np.ndarray:
            of_fine = [row for row, types in enumerate(self.types) if (coarse, fine) in types]
            if coarse and fine and len(of_fine) >= FITTING_MINIMUM:
                return np.array(of_fine, dtype=np.int64)
            of_coarse = [row for row, types in enumerate(self.types) if coarse in {kind for kind, _ in types}]
            if coarse and len(of_coarse) >= FITTING_MINIMUM:
                return np.array(of_coarse, dtype=np.int64)
            return np.arange(len(self.types), dtype=np.int64)

        return self._once(self._rows, (coarse, fine), fitting)

    def vectors(self, encoder: Encoder, templates: Sequence[str]) -> np.ndarray:
        """Return one unit vector a member, shape (members, dimension), float32: the mean over ``templates``, each
        with ``{}``.

        Encoded once for all readers that share the pool.
        """
        key = (encoder.identity, *templates)
        return self._once(self._vectors, key, lambda: template_vectors(encoder, self.answers, templates))

    def background_mean(self, encoder: Encoder) -> np.ndarray:
        """Return the mean vector of the background hints, shape (dimension,), float32; zeros without a background.

        A mean and no finer statistic, on purpose: a gold answer's own hints may be in the background (its distractors
        have none), and in a mean over the collection they weigh next to nothing.
        """

        def mean() -> np.ndarray:
            if not self.background:
                return np.zeros(encoder.dimension, dtype=np.float32)
            return on_grid(encoder.encode(self.background).mean(axis=0))

        return self._once(self._vectors, (encoder.identity,), mean)

    def tokens(self, encoder: Encoder, max_tokens: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the token vectors of all members end to end, shape (tokens, dimension), float16, and where each
        member's begin, shape (members + 1,), int64. Of a member's tokens the first ``max_tokens`` are kept, which
        bounds the memory.
        """

        def encode() -> tuple[np.ndarray, np.ndarray]:
            tokens = token_vectors(encoder, self.answers, max_tokens)
            return np.concatenate(tokens), np.cumsum([0, *(len(member) for member in tokens)])

        return self._once(self._tokens, (encoder.identity, max_tokens), encode)

    def _once(self, values: dict[K, V], key: K, make: Callable[[], V]) -> V:
        with self._lock:
            if key not in values:
                values[key] = make()
            return values[key]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()

"""The closed set of answers an embedded reader can give."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from threading import RLock
from typing import Any

import numpy as np

from quit.common.arithmetic import on_grid, unit
from quit.errors import InputError
from quit.models.protocols import Encoder
from quit.text.answers import answer_key
from quit.text.words import counted

BACKGROUND = 1000
"""How many hint texts of the collection are kept for normalisation statistics."""

FITTING_MINIMUM = 40
"""A type with fewer members than this is too small to guess from: about four questions' candidates."""


def pool_size(answers: Iterable[str]) -> int:
    """Return the number of distinct answers in a pool of these."""
    return len({answer_key(answer) for answer in answers} - {""})


def about_small_pool(size: int) -> str | None:
    """Return what to know about labels by readers that choose from so few answers; None where there are enough."""
    if size >= FITTING_MINIMUM:
        return None
    return (
        f"The embedded readers choose from {counted(size, 'answer')} (gold answers and candidates of all questions). "
        f"With fewer than {FITTING_MINIMUM} they are often right by chance, so the share of label 2 says little. Give "
        "questions more candidates (plausible wrong answers), or build more questions together."
    )


@dataclass
class AnswerPool:
    """Every gold and candidate answer of a collection, without a trace of which is which.

    A gold answer is one anonymous member: members are deduplicated, sorted by key, and carry only their
    surface and the types of the questions they came from. How often or where an answer occurred is forgotten on
    purpose: a gold answer occurs more often than its distractors do.
    """

    answers: tuple[str, ...]
    types: tuple[frozenset[tuple[str | None, str | None]], ...]
    background: tuple[str, ...] = ()
    fitting_minimum: int = FITTING_MINIMUM
    _memory: dict[tuple[str, ...], Any] = field(default_factory=dict, repr=False, compare=False)
    _lock: Any = field(default_factory=RLock, repr=False, compare=False)

    @classmethod
    def build(
        cls,
        entries: Iterable[tuple[str, str | None, str | None]],
        hints: Iterable[str] = (),
        fitting_minimum: int = FITTING_MINIMUM,
    ) -> AnswerPool:
        """Build the pool from (answer, coarse, fine) triples, one a gold or candidate answer of each question.

        ``hints`` are hint texts of the collection, a background for normalisation; of more than ``BACKGROUND`` distinct
        ones, those with the smallest hashes are kept, so that the choice depends on nothing but the texts. The order of
        ``entries`` and ``hints`` never matters.
        """
        surfaces: dict[str, str] = {}
        types: dict[str, set[tuple[str | None, str | None]]] = {}
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
            fitting_minimum=fitting_minimum,
        )

    @cached_property
    def identity(self) -> str:
        """Content hash: members, their types, the background and the back-off threshold."""
        members = [
            [answer, sorted([coarse or "", fine or ""] for coarse, fine in types)]
            for answer, types in zip(self.answers, self.types, strict=True)
        ]
        content = json.dumps([members, self.background, self.fitting_minimum], ensure_ascii=False)
        return f"pool@{_digest(content)[:16]}"

    def rows(self, coarse: str | None, fine: str | None) -> np.ndarray:
        """Return the rows of ``answers`` that fit a question's type, shape (members,), ascending, int64.

        The fine type where it has at least ``fitting_minimum`` members, else the coarse one where it has, else the
        pool.
        """
        return self._once(("rows", coarse or "", fine or ""), lambda: self._rows(coarse, fine))

    def _rows(self, coarse: str | None, fine: str | None) -> np.ndarray:
        members = list(enumerate(self.types))
        if coarse and fine:
            rows = [row for row, types in members if (coarse, fine) in types]
            if len(rows) >= self.fitting_minimum:
                return np.array(rows, dtype=np.int64)
        if coarse:
            rows = [row for row, types in members if any(kind == coarse for kind, _ in types)]
            if len(rows) >= self.fitting_minimum:
                return np.array(rows, dtype=np.int64)
        return np.arange(len(members), dtype=np.int64)

    def vectors(self, encoder: Encoder, templates: Sequence[str]) -> np.ndarray:
        """Return one unit vector a member, shape (members, dimension), float32: the mean over ``templates``, each
        with ``{}``.

        Encoded once for all readers that share the pool.
        """
        key = ("vectors", encoder.identity, *templates)
        return self._once(key, lambda: template_vectors(encoder.encode, self.answers, templates))

    def background_mean(self, encoder: Encoder) -> np.ndarray:
        """Return the mean vector of the background hints, shape (dimension,), float32; zeros without a background.

        A mean and no finer statistic, on purpose: a gold answer's own hints may be in the background (its distractors
        have none), and in a mean over the collection they weigh next to nothing.
        """

        def mean() -> np.ndarray:
            if not self.background:
                return np.zeros(encoder.dimension, dtype=np.float32)
            return on_grid(encoder.encode(self.background).mean(axis=0))

        return self._once(("background", encoder.identity), mean)

    def tokens(self, encoder: Encoder, longest: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the token vectors of all members end to end, shape (tokens, dimension), float16, and where each
        member's begin, shape (members + 1,), int64. Of a member's tokens the first ``longest`` are kept, which bounds
        the memory.
        """

        def encode() -> tuple[np.ndarray, np.ndarray]:
            tokens = answer_tokens(encoder, self.answers, longest)
            return np.concatenate(tokens), np.cumsum([0, *(len(member) for member in tokens)])

        return self._once(("tokens", encoder.identity, str(longest)), encode)

    def _once(self, key: tuple[str, ...], make: Callable[[], Any]) -> Any:
        with self._lock:
            if key not in self._memory:
                self._memory[key] = make()
            return self._memory[key]


def answer_tokens(encoder: Encoder, answers: Sequence[str], longest: int) -> list[np.ndarray]:
    """Return the first ``longest`` unit token vectors of each answer, shapes (tokens, dimension), float16."""
    step = 1024  # answers encoded at once: full float32 token vectors of a large pool would not fit
    return [
        tokens[:longest].astype(np.float16) if len(tokens) else np.zeros((1, encoder.dimension), np.float16)
        for start in range(0, len(answers), step)
        for tokens in encoder.encode_tokens(answers[start : start + step])
    ]


def template_vectors(
    encode: Callable[[Sequence[str]], np.ndarray], answers: Sequence[str], templates: Sequence[str]
) -> np.ndarray:
    """Return the unit mean of each answer's vectors over ``templates``, shape (answers, dimension), float32."""
    vectors = encode([template.replace("{}", answer) for template in templates for answer in answers])
    total = np.sum(vectors.reshape(len(templates), len(answers), vectors.shape[1]), axis=0, dtype=np.float32)
    return unit(np.asarray(total))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()

"""Query understanding: what to ask next, given what was asked and answered. One file a way of planning, and here the
two without a model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from quit.systems.sunar.queries import Query

FINAL = re.compile(r"\[?\bfinal answer\b\]?\s*:", re.IGNORECASE)
"""How a model says that it is done; small ones forget the brackets."""


@dataclass(frozen=True, slots=True)
class Hop:
    """A sub-question and what the reader answered: (sq_i, sa_i)."""

    sub_question: str
    answer: str


@dataclass(frozen=True, slots=True)
class Ask:
    """The next sub-question. ``raw``: the reply it was read from."""

    sub_question: str
    raw: str = ""


@dataclass(frozen=True, slots=True)
class Stop:
    """No further sub-question. ``answer``: the planner's own final answer, if it gave one."""

    reason: str
    answer: str | None = None
    raw: str = ""


class Planner(Protocol):
    """Decomposes a question step by step."""

    name: str
    identity: str

    def next(self, query: Query, path: Sequence[Hop]) -> Ask | Stop:
        """Return the next move after ``path``. Whoever calls it ends at a repeated sub-question and after max_hops."""
        ...


class NoPlan:
    """Retrieve and read: no sub-questions."""

    name = identity = "none"

    def next(self, query: Query, path: Sequence[Hop]) -> Ask | Stop:
        """See :class:`Planner`."""
        return Stop("no plan")


class GoldPlan:
    """The corpus's own decomposition, in order: an **oracle**.

    MuSiQue writes the true answers of earlier sub-questions into later ones, so figures that were made with it are
    upper bounds and cannot be compared with a planner's. A question without a decomposition is read as it is.
    """

    name = identity = "gold"

    def next(self, query: Query, path: Sequence[Hop]) -> Ask | Stop:
        """See :class:`Planner`."""
        if len(path) < len(query.sub_questions):
            return Ask(query.sub_questions[len(path)])
        return Stop("the decomposition is done" if query.sub_questions else "no decomposition is known")


def final_answer(text: str) -> str | None:
    """Return what follows the last ``[Final Answer]:``, up to the end of its line; None where there is none or nothing
    follows."""
    places = list(FINAL.finditer(text))
    if not places:
        return None
    lines = text[places[-1].end() :].strip().splitlines()
    return (lines[0].strip() or None) if lines else None

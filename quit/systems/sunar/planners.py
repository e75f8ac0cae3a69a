"""Query understanding: what to ask next, given what was asked and answered."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from quit.evaluate.normalize import normalize_question
from quit.models.generation.base import before_stop
from quit.systems.sunar.queries import Query
from quit.systems.sunar.reading import Asker

FIELDS = frozenset({"question", "path"})
"""Fields of the prompts of all planners."""
FINAL = re.compile(r"\[?\bfinal answer\b\]?\s*:", re.IGNORECASE)
"""How a model says that it is done; small ones forget the brackets."""
_FOLLOW_UP = re.compile(r"follow[- ]?up\s*:", re.IGNORECASE)
_ACTION = re.compile(r"\b(search|lookup|finish)\s*\[([^\]\n]*)\]?", re.IGNORECASE)
_QUERY = re.compile(r"\[(?:unsolved )?query(?: ?\d+)?\]\s*:\s*([^\n]*)", re.IGNORECASE)


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


class LanguageModelPlanner:
    """Asks a language model for the next move. Subclasses say how the path is written and how a reply is read.

    ``prompt``: its prompt. ``stop``: where a reply ends.
    """

    name = prompt = ""
    stop: tuple[str, ...] = ()

    def __init__(self, asker: Asker) -> None:
        self.identity = f"{self.name}/{asker.identity}"
        self._asker = asker

    def next(self, query: Query, path: Sequence[Hop]) -> Ask | Stop:
        """See :class:`Planner`."""
        raw = self._asker.ask({"question": query.text, "path": self.written(path)}, self.stop)
        return replace(self.read(before_stop(raw, self.stop), path), raw=raw)

    def written(self, path: Sequence[Hop]) -> str:
        """Return the path as the prompt shows it."""
        raise NotImplementedError

    def read(self, reply: str, path: Sequence[Hop]) -> Ask | Stop:
        """Return the move that a reply names. One that names none stops: a model that rambles has no plan."""
        raise NotImplementedError


class SelfAsk(LanguageModelPlanner):
    """SELF-ASK (Press et al. 2023; the SUNAR paper, figures 5 and 6): the model asks itself follow-up questions, the
    retriever answers them.

    The sub-question is what follows the last ``Follow up:``, to the end of the line; ``[Final Answer]:`` ends.
    """

    name, prompt, stop = "self-ask", "self_ask", ("Intermediate Answer:",)

    def written(self, path: Sequence[Hop]) -> str:
        """Return the path as the model would have written it."""
        hops = "".join(f"\nFollow up: {hop.sub_question}\n{self.stop[0]} {hop.answer}" for hop in path)
        return f"Are follow up questions needed here:{' Yes.' if path else ''}{hops}"

    def read(self, reply: str, path: Sequence[Hop]) -> Ask | Stop:
        """See :class:`LanguageModelPlanner`."""
        if (answer := final_answer(reply)) is not None:
            return Stop("final answer", answer)
        question = _line_after_last(_FOLLOW_UP, reply)
        return Ask(question) if question else Stop("no follow-up question in the reply")


class ReAct(LanguageModelPlanner):
    """ReAct (Yao et al. 2023; the SUNAR paper, figure 9): thought, action, observation, in turns. The first action of a
    reply counts.

    ``Search[x]`` retrieves for x, and the reader's answer to x is the observation. ``Lookup[x]`` asks for x about what
    was searched last: there is no page here whose sentences could be walked through. ``Finish[x]`` ends.
    """

    name, prompt, stop = "react", "react", ("Observation",)

    def written(self, path: Sequence[Hop]) -> str:
        """Return the path as actions and observations, and the opening of the next thought."""
        turns = [
            f"Action {number}: Search[{hop.sub_question}]\nObservation {number}: {hop.answer}\n"
            for number, hop in enumerate(path, start=1)
        ]
        return "".join(turns) + f"Thought {len(path) + 1}:"

    def read(self, reply: str, path: Sequence[Hop]) -> Ask | Stop:
        """See :class:`LanguageModelPlanner`."""
        match = _ACTION.search(reply)
        if match is None:
            answer = final_answer(reply)
            return Stop("final answer" if answer else "no action in the reply", answer)
        action, what = match[1].casefold(), match[2].strip()
        if action == "finish":
            return Stop("final answer" if what else "an empty Finish", what or None)
        if not what:
            return Stop(f"an empty {match[1]}")
        return Ask(f"{path[-1].sub_question} {what}" if action == "lookup" and path else what)


class SearChain(LanguageModelPlanner):
    """SearChain (Xu et al. 2024; the SUNAR paper, figure 7): a whole chain of queries at once, asked for again after
    every answer that retrieval gave.

    The first query of the chain that has not been retrieved for is the next sub-question, also where the model wrote an
    answer beside it: that is what retrieval checks. The chain is final when no such query is left.
    """

    name = prompt = "searchain"

    def written(self, path: Sequence[Hop]) -> str:
        """Return what retrieval has confirmed so far."""
        hops = [
            f"[Query {number}]: {hop.sub_question}\n[Answer {number}]: {hop.answer}"
            for number, hop in enumerate(path, start=1)
        ]
        return "\n".join(hops) or "(nothing yet)"

    def read(self, reply: str, path: Sequence[Hop]) -> Ask | Stop:
        """See :class:`LanguageModelPlanner`."""
        asked = {normalize_question(hop.sub_question) for hop in path}
        for match in _QUERY.finditer(reply):
            wanted = match[1].strip()
            if wanted and normalize_question(wanted) not in asked:
                return Ask(wanted)
        answer = final_answer(reply)
        return Stop("final answer" if answer else "no new query in the reply", answer)


def final_answer(text: str) -> str | None:
    """Return the rest of the line after the last ``[Final Answer]:``; None where there is none or it is empty."""
    return _line_after_last(FINAL, text)


def _line_after_last(mark: re.Pattern[str], text: str) -> str | None:
    places = list(mark.finditer(text))
    lines = text[places[-1].end() :].strip().splitlines() if places else []
    return (lines[0].strip() or None) if lines else None

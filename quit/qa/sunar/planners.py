"""Query understanding: what to ask next, given what was asked and answered."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from quit.models.generation.base import before_stop
from quit.qa.sunar.extract import sentences
from quit.qa.sunar.queries import Query
from quit.qa.sunar.reading import ANSWER_IS, Asker, final_answer, line_after_last, numbered_list, own_part
from quit.text.normalize import normalize_question

_FOLLOW_UP = re.compile(r"follow[- ]?up\s*:", re.IGNORECASE)
_ACTION = re.compile(r"\b(search|lookup|finish)\s*\[([^\]\n]*)\]?", re.IGNORECASE)
_LABEL = re.compile(r"^\s*thought\s*\d*\s*:|action\s*\d*\s*:?\s*$", re.IGNORECASE)
"""The labels around the thought in a reply of ReAct."""
_RETRIEVE = re.compile(r"\[retrieve[^\]\n]*\]\s*([^\n]*\S)", re.IGNORECASE)
_QUERY = re.compile(r"\[(?:unsolved )?query(?: ?\d+)?\]\s*:\s*([^\n]*)", re.IGNORECASE)


IRCOT_STEP, IRCOT_MAX = 4, 15
"""Documents that each sentence of IRCoT adds, and documents that it reads at most (Trivedi et al. 2023)."""
UNREAD = "in the reply"
"""How the reasons end for which a plan stops at a reply that could not be read."""


@dataclass(frozen=True, slots=True)
class Hop:
    """A sub-question and its answer: (sq_i, sa_i). ``raw``: the reply that asked it. ``texts``: what was read."""

    sub_question: str
    answer: str
    raw: str = ""
    texts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ask:
    """The next sub-question. ``raw``: the reply it was read from. ``answer``: what is known without retrieval."""

    sub_question: str
    raw: str = ""
    answer: str | None = None


@dataclass(frozen=True, slots=True)
class Stop:
    """No further sub-question. ``answer``: the planner's own final answer, if it gave one. A ``reason`` that ends in
    :data:`UNREAD` says what the reply lacks."""

    reason: str
    answer: str | None = None
    raw: str = ""


class Planner:
    """Decomposes a question step by step. ``reads_last``: nothing is answered on the way, only the question itself in
    the end, from what was :meth:`collected`."""

    name = identity = ""
    reads_last = False

    def next(self, query: Query, path: Sequence[Hop]) -> Ask | Stop:
        """Return the next move after ``path``. Whoever calls it ends at a repeated sub-question and after max_hops."""
        raise NotImplementedError

    def collected(self, path: Sequence[Hop]) -> list[str]:
        """Return the texts of the path that count, each once, in the order in which they were found."""
        return list(dict.fromkeys(text for hop in path for text in hop.texts))


class NoPlan(Planner):
    """Retrieve and read: no sub-questions."""

    name = identity = "none"

    def next(self, query: Query, path: Sequence[Hop]) -> Ask | Stop:
        """See :class:`Planner`."""
        return Stop("no plan")


class GoldPlan(Planner):
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


class LanguageModelPlanner(Planner):
    """Asks a language model for the next move. Subclasses say how the path is written and how a reply is read.

    ``prompt``: its prompt, with the placeholders ``fields``. ``stop``: where a reply ends.
    """

    prompt = ""
    fields = frozenset({"question", "path"})
    stop: tuple[str, ...] = ()

    def __init__(self, asker: Asker) -> None:
        self.identity = f"{self.name}/{asker.identity}"
        self._asker = asker

    def next(self, query: Query, path: Sequence[Hop]) -> Ask | Stop:
        """See :class:`Planner`."""
        fields = {"question": query.text, "path": self.written(path)}
        if "evidence" in self.fields:
            fields["evidence"] = numbered_list(self.collected(path))
        raw = self._asker.ask(fields, self.stop)
        return replace(self.read(own_part(before_stop(raw, self.stop)), path), raw=raw)

    def written(self, path: Sequence[Hop]) -> str:
        """Return the path as the prompt shows it."""
        raise NotImplementedError

    def read(self, reply: str, path: Sequence[Hop]) -> Ask | Stop:
        """Return the move that a reply names. One that names none stops: a model that rambles has no plan."""
        raise NotImplementedError


class SelfAsk(LanguageModelPlanner):
    """SELF-ASK (Press et al. 2023; the SUNAR paper, appendix F): the model asks itself follow-up questions, the
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
        question = line_after_last(_FOLLOW_UP, reply)
        return Ask(question) if question else Stop("no follow-up question in the reply")


class ReAct(LanguageModelPlanner):
    """ReAct (Yao et al. 2023; the SUNAR paper, appendix F): thought, action, observation, in turns. The first action of
    a reply counts.

    ``Search[x]`` retrieves for x; the reader's answer to x is the observation, the documents are the evidence.
    ``Lookup[x]`` observes the next sentence with x in the documents of the last search; before any search it is one.
    ``Finish[x]`` ends.
    """

    name, prompt, stop = "react", "react", ("Observation",)
    fields = frozenset({"question", "path", "evidence"})

    def written(self, path: Sequence[Hop]) -> str:
        """Return the path as thoughts, actions and observations, and the opening of the next thought."""
        lines = []
        for number, hop in enumerate(path, start=1):
            match = _ACTION.search(hop.raw)
            thought = _LABEL.sub("", hop.raw[: match.start()] if match else "").strip()
            action = hop.sub_question if _is_lookup(hop) else f"Search[{hop.sub_question}]"
            if thought:
                lines.append(f"Thought {number}: {thought}")
            lines += [f"Action {number}: {action}", f"Observation {number}: {hop.answer}"]
        return "\n".join([*lines, f"Thought {len(path) + 1}:"])

    def collected(self, path: Sequence[Hop]) -> list[str]:
        """Return the documents of the last search."""
        return next((list(hop.texts) for hop in reversed(path) if not _is_lookup(hop)), [])

    def read(self, reply: str, path: Sequence[Hop]) -> Ask | Stop:
        """See :class:`LanguageModelPlanner`."""
        match = _ACTION.search(reply)
        if match is None:
            answer = final_answer(reply)
            return Stop("final answer" if answer else "no action in the reply", answer)
        action, what = match[1].casefold(), match[2].strip()
        if action == "finish":
            return Stop("final answer" if what else "an empty Finish in the reply", what or None)
        if not what:
            return Stop(f"an empty {match[1]} in the reply")
        if action == "lookup" and path:
            return Ask(f"Lookup[{what}]", answer=self._looked_up(what, path))
        return Ask(what)

    def _looked_up(self, what: str, path: Sequence[Hop]) -> str:
        """Return the next sentence that contains ``what``: as often as it was looked up since the last search, further
        down."""
        matches = [text for document in self.collected(path) for text in sentences(document)]
        matches = [text for text in matches if what.casefold() in text.casefold()]
        since = takewhile(_is_lookup, reversed(path))
        count = sum(hop.sub_question.casefold() == f"lookup[{what}]".casefold() for hop in since)
        return f"(Result {count + 1} / {len(matches)}) {matches[count]}" if count < len(matches) else "No more results."


def _is_lookup(hop: Hop) -> bool:
    return hop.sub_question.startswith("Lookup[")


class SearChain(LanguageModelPlanner):
    """SearChain (Xu et al. 2024; the SUNAR paper, appendix F): a whole chain of queries at once, asked for again after
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
        earlier = {normalize_question(hop.sub_question) for hop in path}
        for match in _QUERY.finditer(reply):
            question = match[1].strip()
            if question and normalize_question(question) not in earlier:
                return Ask(question)
        answer = final_answer(reply)
        return Stop("final answer" if answer else "no new query in the reply", answer)


class Decomp(LanguageModelPlanner):
    """Decomposed prompting (Khot et al. 2023; the SUNAR paper, figure 8): a sub-question after ``[retrieve odqa]`` is
    retrieved for and answered; ``[multihop titleqa]`` is for the question itself, whose ``[Final Answer]:`` ends.

    The prompt shows all documents so far, in place of the figure's lists of titles.
    """

    name = prompt = "decomp"
    stop = ("\nAnswer:", "\n[Question]:")
    fields = frozenset({"question", "path", "evidence"})

    def written(self, path: Sequence[Hop]) -> str:
        """Return the sub-questions with their answers, and the opening of the next."""
        steps = [
            f'Subquestion {number}: (select) [retrieve odqa] {hop.sub_question}\nAnswer: "answer": ["{hop.answer}"]'
            for number, hop in enumerate(path, start=1)
        ]
        return "\n".join([*steps, f"Subquestion {len(path) + 1}:"])

    def read(self, reply: str, path: Sequence[Hop]) -> Ask | Stop:
        """See :class:`LanguageModelPlanner`."""
        if match := _RETRIEVE.search(reply):
            return Ask(match[1].strip())
        answer = final_answer(reply)
        return Stop("final answer" if answer else "neither a sub-question nor a final answer in the reply", answer)


class IRCoT(LanguageModelPlanner):
    """IRCoT (Trivedi et al. 2023; the SUNAR paper, table 1): each sentence of a chain of thought is retrieved for, and
    the question is answered in the end from all that was collected.

    The question itself is retrieved for first. The first sentence of a reply counts; one with ``answer is`` ends.
    It adds :data:`IRCOT_STEP` documents; :data:`IRCOT_MAX` are read at most.
    """

    name = prompt = "ircot"
    fields = frozenset({"question", "path", "evidence"})
    reads_last = True

    def __init__(self, asker: Asker) -> None:
        super().__init__(asker)
        self.identity += f"/{IRCOT_STEP} of {IRCOT_MAX}"

    def next(self, query: Query, path: Sequence[Hop]) -> Ask | Stop:
        """See :class:`Planner`."""
        return super().next(query, path) if path else Ask(query.text)

    def written(self, path: Sequence[Hop]) -> str:
        """Return the thoughts so far."""
        return " ".join(["Reasoning:", *(hop.sub_question for hop in path[1:])])

    def collected(self, path: Sequence[Hop]) -> list[str]:
        """Return the first documents of every step, each once."""
        return super().collected([replace(hop, texts=hop.texts[:IRCOT_STEP]) for hop in path])[:IRCOT_MAX]

    def read(self, reply: str, path: Sequence[Hop]) -> Ask | Stop:
        """See :class:`LanguageModelPlanner`."""
        thought = next(iter(sentences(reply)), "")
        if match := ANSWER_IS.search(thought):
            return Stop("final answer", match[1].strip(" .") or None)
        return Ask(thought) if thought else Stop("no thought in the reply")

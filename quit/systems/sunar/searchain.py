"""SearChain style planning (Xu et al. 2024; the SUNAR paper, figure 7): a whole chain of queries at once, checked query
by query."""

from __future__ import annotations

import re
from collections.abc import Sequence

from quit.evaluate.normalize import normalize_question
from quit.systems.sunar.planners import Ask, Hop, Stop, final_answer
from quit.systems.sunar.queries import Query
from quit.systems.sunar.reading import Asker

FIELDS = frozenset({"question", "path"})
_QUERY = re.compile(r"\[(?:unsolved )?query(?: ?\d+)?\]\s*:\s*([^\n]*)", re.IGNORECASE)


class SearChain:
    """Asks for the chain again after every answer that retrieval gave, with those answers in it.

    The first query of the chain that has not been retrieved for is the next sub-question, also where the model wrote an
    answer beside it: that is what retrieval checks. The chain is final when no such query is left.
    """

    name = "searchain"

    def __init__(self, asker: Asker) -> None:
        self.identity = f"searchain/{asker.identity}"
        self._asker = asker

    def next(self, query: Query, path: Sequence[Hop]) -> Ask | Stop:
        """See :class:`quit.systems.sunar.planners.Planner`."""
        raw = self._asker.ask({"question": query.text, "path": written(path)})
        asked = {normalize_question(hop.sub_question) for hop in path}
        for match in _QUERY.finditer(raw):
            wanted = match[1].strip()
            if wanted and normalize_question(wanted) not in asked:
                return Ask(wanted, raw)
        answer = final_answer(raw)
        return Stop("final answer" if answer else "no new query in the reply", answer, raw)


def written(path: Sequence[Hop]) -> str:
    """Return what retrieval has confirmed so far."""
    return (
        "\n".join(
            f"[Query {number}]: {hop.sub_question}\n[Answer {number}]: {hop.answer}"
            for number, hop in enumerate(path, start=1)
        )
        or "(nothing yet)"
    )

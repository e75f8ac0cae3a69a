"""SELF-ASK (Press et al. 2023; the SUNAR paper, figures 5 and 6): the model asks itself follow-up questions, the
retriever answers them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from quit.models.generation.base import before_stop
from quit.systems.sunar.planners import Ask, Hop, Stop, final_answer
from quit.systems.sunar.queries import Query
from quit.systems.sunar.reading import Asker

FIELDS = frozenset({"question", "path"})
STOP = "Intermediate Answer:"
_FOLLOW_UP = re.compile(r"follow[- ]?up\s*:", re.IGNORECASE)


class SelfAsk:
    """Asks for the next follow-up question, stopping the model before it answers that itself.

    The sub-question is what stands after the last ``Follow up:``, to the end of the line; ``[Final Answer]:`` ends. A
    reply with neither ends too: a model that rambles has no plan.
    """

    name = "self-ask"

    def __init__(self, asker: Asker) -> None:
        self.identity = f"self-ask/{asker.identity}"
        self._asker = asker

    def next(self, query: Query, path: Sequence[Hop]) -> Ask | Stop:
        """See :class:`quit.systems.sunar.planners.Planner`."""
        raw = self._asker.ask({"question": query.text, "path": written(path)}, (STOP,))
        reply = before_stop(raw, (STOP,))
        answer = final_answer(reply)
        if answer is not None:
            return Stop("final answer", answer, raw)
        places = list(_FOLLOW_UP.finditer(reply))
        lines = reply[places[-1].end() :].strip().splitlines() if places else []
        if not lines or not lines[0].strip():
            return Stop("no follow-up question in the reply", raw=raw)
        return Ask(lines[0].strip(), raw)


def written(path: Sequence[Hop]) -> str:
    """Return the path as the model would have written it."""
    if not path:
        return "Are follow up questions needed here:"
    hops = "".join(f"\nFollow up: {hop.sub_question}\n{STOP} {hop.answer}" for hop in path)
    return f"Are follow up questions needed here: Yes.{hops}"

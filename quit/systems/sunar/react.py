"""ReAct style planning (Yao et al. 2023; the SUNAR paper, figure 9): thought, action, observation, in turns."""

from __future__ import annotations

import re
from collections.abc import Sequence

from quit.models.generation.base import before_stop
from quit.systems.sunar.planners import Ask, Hop, Stop, final_answer
from quit.systems.sunar.queries import Query
from quit.systems.sunar.reading import Asker

FIELDS = frozenset({"question", "path"})
STOP = "Observation"
_ACTION = re.compile(r"\b(search|lookup|finish)\s*\[([^\]\n]*)\]?", re.IGNORECASE)


class ReAct:
    """The first action of a reply counts.

    ``Search[x]`` retrieves for x, and the reader's answer to x is the observation. ``Lookup[x]`` asks for x about what
    was searched last: there is no page here whose sentences could be walked through. ``Finish[x]`` ends.
    """

    name = "react"

    def __init__(self, asker: Asker) -> None:
        self.identity = f"react/{asker.identity}"
        self._asker = asker

    def next(self, query: Query, path: Sequence[Hop]) -> Ask | Stop:
        """See :class:`quit.systems.sunar.planners.Planner`."""
        raw = self._asker.ask({"question": query.text, "path": written(path)}, (STOP,))
        reply = before_stop(raw, (STOP,))
        match = _ACTION.search(reply)
        if match is None:
            answer = final_answer(reply)
            return Stop("final answer" if answer else "no action in the reply", answer, raw)
        action, what = match[1].casefold(), match[2].strip()
        if action == "finish":
            return Stop("final answer" if what else "an empty Finish", what or None, raw)
        if not what:
            return Stop(f"an empty {match[1]}", raw=raw)
        return Ask(f"{path[-1].sub_question} {what}" if action == "lookup" and path else what, raw)


def written(path: Sequence[Hop]) -> str:
    """Return the path as actions and observations, and the opening of the next thought."""
    turns = [
        f"Action {number}: Search[{hop.sub_question}]\nObservation {number}: {hop.answer}\n"
        for number, hop in enumerate(path, start=1)
    ]
    return "".join(turns) + f"Thought {len(path) + 1}:"

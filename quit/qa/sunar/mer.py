"""The meta evidence reasoner (the SUNAR paper, section 3.2): a last look at path and evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from quit.models.protocols import NO_ANSWER
from quit.qa.sunar.planners import Hop
from quit.qa.sunar.reading import AnswerModel, Asker, final_answer, numbered_list

FIELDS = frozenset({"question", "path", "evidence"})


@dataclass(frozen=True, slots=True)
class Meta:
    """The reasoner's answer, None where its reply has none; ``raw``: the reply."""

    answer: str | None
    raw: str = ""


class MetaReasoner(Protocol):
    """Answers the original question from the reasoning path and the evidence of all sub-questions."""

    identity: str

    def reason(self, question: str, path: Sequence[Hop], texts: Sequence[str]) -> Meta:
        """Return the final answer. Without a path this is retrieve-and-read."""


class LanguageModelReasoner:
    """Asks with the fields of figure 4: path, evidence and question, in the prompt's words, which are not the paper's.

    A reply without ``[Final Answer]:`` has no answer: the system then falls back on the path's.
    """

    def __init__(self, asker: Asker) -> None:
        self.identity = f"meta/{asker.identity}"
        self._asker = asker

    def reason(self, question: str, path: Sequence[Hop], texts: Sequence[str]) -> Meta:
        """See :class:`MetaReasoner`."""
        steps = "\n".join(f"{number}. {hop.sub_question} {hop.answer}" for number, hop in enumerate(path, start=1))
        fields = {"question": question, "path": steps or "(none)", "evidence": numbered_list(texts)}
        raw = self._asker.ask(fields)
        return Meta(final_answer(raw), raw)


class LastAnswer:
    """Does not reason: the last sub-answer that was found, else what the reader finds in the evidence."""

    def __init__(self, reader: AnswerModel) -> None:
        self.identity = f"last-answer/{reader.identity}"
        self._reader = reader

    def reason(self, question: str, path: Sequence[Hop], texts: Sequence[str]) -> Meta:
        """See :class:`MetaReasoner`."""
        answers = [hop.answer for hop in path if hop.answer != NO_ANSWER]
        return Meta(answers[-1] if answers else self._reader.answer(question, texts))

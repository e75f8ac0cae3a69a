"""What answers a sub-question from documents: a language model (:mod:`.extract` has the embedded reader)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Protocol

from quit.models.cleaning import clean_answer
from quit.models.generation import CachedGenerator, ChatRequest
from quit.models.prompting import PromptTemplate
from quit.models.protocols import NO_ANSWER
from quit.settings import Sunar

LONGEST = 300
"""Characters of an answer that is a sentence."""
ANSWER_FIELDS = frozenset({"evidence", "question"})
_FINAL = re.compile(r"\[?\bfinal answer\b\]?\s*:", re.IGNORECASE)
"""How a model says that it is done; small ones forget the brackets."""


class AnswerModel(Protocol):
    """P_LLM of the paper: answers to a question, given documents."""

    identity: str

    def answer(self, question: str, texts: Sequence[str]) -> str:
        """Return the likeliest answer, or ``NO ANSWER``."""
        ...

    def samples(self, question: str, texts: Sequence[str], m: int) -> list[str]:
        """Return at most m sampled answers (phi of eq. 2), ``NO ANSWER`` among them; always the same ones."""
        ...


class Asker:
    """A language model as SUNAR asks it: one prompt, the same sampling for every part, replies cached by number."""

    def __init__(self, generator: CachedGenerator, prompt: PromptTemplate, settings: Sunar) -> None:
        penalties = f"penalties {settings.frequency_penalty:g}/{settings.presence_penalty:g}"
        sampling = f"temperature {settings.temperature:g}, top_p {settings.top_p:g}, {penalties}"
        self.identity = f"{generator.identity}|{prompt.identity}|{sampling}, {settings.max_tokens} tokens"
        self._generator = generator
        self._prompt = prompt
        self._settings = settings

    def ask(self, fields: Mapping[str, str], stop: tuple[str, ...] = ()) -> str:
        """Return the greedy reply, without what follows a stop string."""
        return self._complete(fields, 0.0, 1, stop)[0]

    def sample(self, fields: Mapping[str, str], m: int) -> list[str]:
        """Return m sampled replies; the i-th is the same whenever it is asked for."""
        return self._complete(fields, self._settings.temperature, m, ())

    def _complete(self, fields: Mapping[str, str], temperature: float, m: int, stop: tuple[str, ...]) -> list[str]:
        how = self._settings
        requests = [
            ChatRequest(
                self._prompt,
                fields,
                how.max_tokens,
                temperature,
                sample,
                group=fields.get("question", ""),
                top_p=how.top_p,
                frequency_penalty=how.frequency_penalty,
                presence_penalty=how.presence_penalty,
                stop=stop,
            )
            for sample in range(m)
        ]
        return [completion.text for completion in self._generator.complete(requests)]


class LanguageModelAnswers:
    """Answers of a language model: what follows ``[Final Answer]:``, else the last line of a reply, or ``NO ANSWER``.

    The prompt decides whether it answers at once or thinks step by step first (Wei et al. 2022; the SUNAR paper, table
    1).
    """

    def __init__(self, asker: Asker) -> None:
        self.identity = asker.identity
        self._asker = asker

    def answer(self, question: str, texts: Sequence[str]) -> str:
        """See :class:`AnswerModel`."""
        return short(self._asker.ask(_fields(question, texts)))

    def samples(self, question: str, texts: Sequence[str], m: int) -> list[str]:
        """See :class:`AnswerModel`."""
        return [short(reply) for reply in self._asker.sample(_fields(question, texts), m)]


def short(reply: str) -> str:
    """Return the answer in a reply.

    Unlike the dataset's readers, a full sentence counts: cover-EM looks for the answer inside, and the next hop needs
    it. A line that rambles on is cut after ``LONGEST`` characters.
    """
    reply = final_answer(reply) or reply
    answer = clean_answer(reply)
    if answer != NO_ANSWER or "no answer" in reply.casefold():
        return answer
    lines = [line.strip() for line in reply.splitlines() if line.strip()]
    return lines[-1][:LONGEST].strip() if lines else NO_ANSWER


def final_answer(text: str) -> str | None:
    """Return the rest of the line after the last ``[Final Answer]:``; None where there is none or it is empty."""
    return line_after_last(_FINAL, text)


def line_after_last(mark: re.Pattern[str], text: str) -> str | None:
    """Return the rest of the line after the last match, or the next line that is not blank; None where none follows."""
    places = list(mark.finditer(text))
    lines = text[places[-1].end() :].strip().splitlines() if places else []
    return (lines[0].strip() or None) if lines else None


def numbered(texts: Sequence[str]) -> str:
    """Return documents as a prompt shows them: one a line, numbered from 1."""
    return "\n".join(f"[{number}] {text}" for number, text in enumerate(texts, start=1)) or "(none was found)"


def _fields(question: str, texts: Sequence[str]) -> dict[str, str]:
    return {"question": question, "evidence": numbered(texts)}

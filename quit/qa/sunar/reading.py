"""Answering a sub-question from documents with a language model (:mod:`.extract` has the embedded reader)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from quit.models.generation import CachedGenerator, ChatRequest
from quit.models.prompting import PromptTemplate
from quit.models.protocols import NO_ANSWER
from quit.models.readers.cleaning import clean_answer
from quit.qa.settings import Sunar

TEMPERATURE, FREQUENCY_PENALTY, PRESENCE_PENALTY = 0.3, 0.8, 0.6
"""Temperature of sampled answers, and both penalties of every reply (the SUNAR paper, section 4; else greedy)."""
MAX_LENGTH = 300
"""Characters of an answer that is a sentence."""
ANSWER_FIELDS = frozenset({"evidence", "question"})
_FINAL = re.compile(r"\[?\bfinal answer\b\]?\s*:", re.IGNORECASE)
"""How a model says that it is done; small ones forget the brackets."""
ANSWER_IS = re.compile(r"\banswer is\b:?\s*(.*)", re.IGNORECASE)
_EXAMPLE = re.compile(r"^[ \t]*(?:Question|Evidence|Existing steps):", re.MULTILINE)
_NUMBERED = re.compile(r"\[\d+\]\s*")
_REFUSAL = re.compile(
    r"\b(?:evidence|context|documents?|passages?|texts?|information)\b.{0,60}?\b(?:does|do|did|is|are)(?: not|n't)\b"
    r"|\bno information\b|\bnot possible to (?:determine|answer|say)\b",
    re.IGNORECASE,
)


COUNTS = ("calls", "prompt_tokens", "completion_tokens", "cut", "empty", "unread")
"""Counts of replies. ``cut``: those that ran into ``sunar.max_tokens``. ``unread``: a reader's, without the
``[Final Answer]:`` that its prompt asks for; their last line counts."""
_COUNTS: ContextVar[Counter[str] | None] = ContextVar("counts", default=None)


@contextmanager
def counting_replies() -> Iterator[Counter[str]]:
    """Count the replies that this thread gets in the block, from the cache or not; the keys are :data:`COUNTS`."""
    counts = Counter(dict.fromkeys(COUNTS, 0))
    outer = _COUNTS.set(counts)
    try:
        yield counts
    finally:
        _COUNTS.reset(outer)


def _count(**amounts: int) -> None:
    if (counts := _COUNTS.get()) is not None:
        counts.update(amounts)


class AnswerModel(Protocol):
    """P_LLM of the paper: answers to a question, given documents."""

    identity: str

    def answer(self, question: str, texts: Sequence[str]) -> str:
        """Return the likeliest answer, or ``NO ANSWER``."""

    def samples(self, question: str, texts: Sequence[str], m: int) -> list[str]:
        """Return at most m sampled answers (phi of eq. 2), ``NO ANSWER`` among them; always the same ones."""


class Asker:
    """A language model as SUNAR asks it: one prompt, the same sampling for every part, replies cached by number."""

    def __init__(self, generator: CachedGenerator, prompt: PromptTemplate, settings: Sunar) -> None:
        penalties = f"penalties {FREQUENCY_PENALTY:g}/{PRESENCE_PENALTY:g}"
        sampling = f"temperature {TEMPERATURE:g}, {penalties}"
        self.identity = f"{generator.identity}|{prompt.identity}|{sampling}, {settings.max_tokens} tokens"
        self._generator = generator
        self._prompt = prompt
        self._settings = settings

    def ask(self, fields: Mapping[str, str], stop: tuple[str, ...] = ()) -> str:
        """Return the greedy reply, without what follows a stop string."""
        return self._complete(fields, 0.0, 1, stop)[0]

    def sample(self, fields: Mapping[str, str], m: int) -> list[str]:
        """Return m sampled replies; the i-th is the same whenever it is asked for."""
        return self._complete(fields, TEMPERATURE, m, ())

    def _complete(self, fields: Mapping[str, str], temperature: float, m: int, stop: tuple[str, ...]) -> list[str]:
        requests = [
            ChatRequest(
                self._prompt,
                fields,
                self._settings.max_tokens,
                temperature,
                sample,
                group=fields.get("question", ""),
                frequency_penalty=FREQUENCY_PENALTY,
                presence_penalty=PRESENCE_PENALTY,
                stop=stop,
            )
            for sample in range(m)
        ]
        completions = self._generator.complete(requests)
        for completion in completions:
            _count(
                calls=1,
                prompt_tokens=completion.prompt_tokens,
                completion_tokens=completion.completion_tokens,
                cut=completion.finish_reason == "length",
                empty=not completion.text.strip(),
            )
        return [completion.text for completion in completions]


class LanguageModelAnswers:
    """Answers of a language model: what follows ``[Final Answer]:``, else the last line of a reply, or ``NO ANSWER``.

    The prompt decides whether it answers at once or thinks step by step first (Wei et al. 2022; the SUNAR paper, table
    1). ``needs_mark``: whether it asks for ``[Final Answer]:``, so that replies without it count as unread.
    """

    def __init__(self, asker: Asker, needs_mark: bool = False) -> None:
        self.identity = asker.identity
        self._asker, self._needs_mark = asker, needs_mark

    def answer(self, question: str, texts: Sequence[str]) -> str:
        """See :class:`AnswerModel`."""
        return self._short_answer(self._asker.ask(_fields(question, texts)))

    def samples(self, question: str, texts: Sequence[str], m: int) -> list[str]:
        """See :class:`AnswerModel`."""
        return [self._short_answer(reply) for reply in self._asker.sample(_fields(question, texts), m)]

    def _short_answer(self, reply: str) -> str:
        _count(unread=self._needs_mark and final_answer(reply) is None)
        return short(reply)


def short(reply: str) -> str:
    """Return the answer in a reply.

    That is what follows ``[Final Answer]:`` or ``the answer is``, else the last line. Evidence that the model makes up
    after its answer (lines that begin with ``[5]``) does not count, and that the evidence says nothing is ``NO
    ANSWER``. Unlike the dataset's readers, a full sentence counts: cover-EM looks for the answer inside, and the next
    hop needs it. A line that rambles on is cut after ``MAX_LENGTH`` characters.
    """
    if (answer := final_answer(reply)) is None:
        lines = [line.strip() for line in own_part(reply).splitlines() if line.strip()]
        lines = [_NUMBERED.sub("", line) for place, line in enumerate(lines) if not (place and _NUMBERED.match(line))]
        answers = [match[1] for line in lines if (match := ANSWER_IS.search(line))]
        answer = (answers or lines or [""])[-1]
    if "no answer" in answer.casefold() or _REFUSAL.search(answer):
        return NO_ANSWER
    text = clean_answer(answer)
    return text if text != NO_ANSWER else answer[:MAX_LENGTH].strip() or NO_ANSWER


def own_part(reply: str) -> str:
    """Return a reply up to where the model makes up a further example, in the words of its prompt."""
    echo = _EXAMPLE.search(reply)
    return reply[: echo.start()] if echo else reply


def final_answer(reply: str) -> str | None:
    """Return the rest of the line after the last ``[Final Answer]:`` of the :func:`own_part`; None without any."""
    return line_after_last(_FINAL, own_part(reply))


def line_after_last(mark: re.Pattern[str], text: str) -> str | None:
    """Return the rest of the line after the last match, or the next line that is not blank; None where none follows."""
    places = list(mark.finditer(text))
    lines = text[places[-1].end() :].strip().splitlines() if places else []
    return (lines[0].strip() or None) if lines else None


def numbered_list(texts: Sequence[str]) -> str:
    """Return documents as a prompt shows them: one per line, numbered from 1."""
    return "\n".join(f"[{number}] {text}" for number, text in enumerate(texts, start=1)) or "(none was found)"


def _fields(question: str, texts: Sequence[str]) -> dict[str, str]:
    return {"question": question, "evidence": numbered_list(texts)}

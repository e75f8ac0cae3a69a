"""Reports from selected documents (bandit paper, 5.2): a cited answer, and three scores of it by a judge.

The paper scores with Auto-ARGUE; the three measures are computed here from single Yes or No questions, so any judge
will do.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from quit.models.generation import CachedGenerator, ChatRequest
from quit.models.prompting import load_prompt
from quit.qa.relevance import YesNo
from quit.qa.settings.bandits import Reports
from quit.text.words import ABBREVIATED

REPORT_FIELDS = frozenset({"request", "documents"})
SUPPORT_FIELDS = frozenset({"document", "sentence"})
NUGGET_FIELDS = frozenset({"report", "question", "answer"})
DOCUMENT_WORDS = 200
"""Words of a document that writer and judge see."""
_CITATION = re.compile(r"\[\s*(\d+(?:\s*[,;]\s*\d+)*)\s*\]")
_CITATIONS = r"((?:\s*\[[\d,;\s]+\])*)"
_SENTENCE = re.compile(rf"(?:(?<=[.!?]){_CITATIONS}\s+|(?<=[。！？]){_CITATIONS}\s*)(?=[\"“'(]?(\w))|\n+")
_NO_DOCUMENT = 1 << 30  # the place that [0] cites
_BEFORE_STOP = re.compile(r"(?<=\w)\s+(?=[.!?。！？])")


@dataclass(frozen=True, slots=True)
class Nugget:
    """A piece of information that a report should hold: a question and its answer."""

    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class ReportTask:
    """The inputs of a report. ``documents``: (id, text) in the order in which a policy observed them, each once."""

    request_id: str
    request: str
    documents: tuple[tuple[str, str], ...]
    nuggets: tuple[Nugget, ...]


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence without its citations, and the documents it cites: places in the task's list, from 0, each once."""

    text: str
    cited: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """A report and its scores, 0 to 1.

    ``citation_support``: supported citations / citations. ``nugget_coverage``: nuggets that it holds / nuggets.
    ``sentence_support``: sentences of which a cited document supports what they say / sentences. What would be divided
    by zero is 0.
    ``invented``: citations of documents that do not exist; they support nothing. ``unread``: those of the ``verdicts``
    that could not be read; they count as No. ``cut``: the report ran into ``reports.max_new_tokens``.
    """

    request_id: str
    text: str
    sentences: tuple[Sentence, ...]
    documents: tuple[str, ...]
    citation_support: float
    nugget_coverage: float
    sentence_support: float
    citations: int
    invented: int
    unread: int
    verdicts: int
    cut: bool = False


class Draft(NamedTuple):
    """A report's text. ``cut``: whether it ran into the limit of tokens."""

    text: str
    cut: bool


def drafts(generator: CachedGenerator, settings: Reports, tasks: Sequence[ReportTask]) -> list[Draft]:
    """Return a report per task, written at temperature 0. Without documents there is nothing to write: it is empty."""
    prompt = load_prompt(settings.prompt, REPORT_FIELDS)
    requests = []
    for task in (task for task in tasks if task.documents):
        texts = [shorten(text, DOCUMENT_WORDS) for _, text in task.documents]
        documents = "\n\n".join(f"[{number}] {text}" for number, text in enumerate(texts, start=1))
        fields = {"request": task.request, "documents": documents}
        requests.append(ChatRequest(prompt, fields, settings.max_new_tokens, group=task.request_id))
    replies = generator.complete(requests)
    written = (Draft(reply.text.strip(), reply.finish_reason == "length") for reply in replies)
    return [next(written) if task.documents else Draft("", False) for task in tasks]


class ReportJudge:
    """Scores reports: does a document support a sentence, does a report hold a nugget?"""

    def __init__(self, generator: CachedGenerator, attempts: int) -> None:
        self._support, self._nugget = (
            YesNo(generator, load_prompt(name, fields), attempts=attempts)
            for name, fields in (("report_support", SUPPORT_FIELDS), ("report_nugget", NUGGET_FIELDS))
        )

    def score(self, task: ReportTask, text: str) -> Report:
        """Return the report with its scores."""
        sentences = parse_report(text)
        count = len(task.documents)
        pairs = [(place, cited) for place, each in enumerate(sentences) for cited in each.cited if cited < count]
        citations = sum(len(sentence.cited) for sentence in sentences)
        documents = [shorten(document, DOCUMENT_WORDS) for _, document in task.documents]
        supports = self._support.ask(
            [{"document": documents[cited], "sentence": sentences[position].text} for position, cited in pairs],
            group=task.request_id,
        )
        nuggets = [{"report": text, "question": each.question, "answer": each.answer} for each in task.nuggets]
        nugget_verdicts = self._nugget.ask(nuggets if text.strip() else [], group=task.request_id)
        support = {position for (position, _), verdict in zip(pairs, supports, strict=True) if verdict}
        return Report(
            request_id=task.request_id,
            text=text,
            sentences=tuple(sentences),
            documents=tuple(identity for identity, _ in task.documents),
            citation_support=_share(sum(verdict is True for verdict in supports), citations),
            nugget_coverage=_share(sum(verdict is True for verdict in nugget_verdicts), len(task.nuggets)),
            sentence_support=_share(len(support), len(sentences)),
            citations=citations,
            invented=citations - len(pairs),
            unread=supports.count(None) + nugget_verdicts.count(None),
            verdicts=len(supports) + len(nugget_verdicts),
        )


def parse_report(text: str) -> list[Sentence]:
    """Return the sentences of a report with their citations, which stand before or after the full stop.

    ``[1][3]`` and ``[1, 3]`` are the same; a document is cited once per sentence. ``[0]`` cites no document.
    """
    sentences = []
    for piece in _pieces(text):
        numbers = [int(number[:9]) for group in _CITATION.findall(piece) for number in re.split(r"[,;]", group)]
        cited = tuple(dict.fromkeys(number - 1 if number else _NO_DOCUMENT for number in numbers))
        plain = _BEFORE_STOP.sub("", " ".join(_CITATION.sub(" ", piece).split()))
        if any(char.isalnum() for char in plain):
            sentences.append(Sentence(plain, cited))
        elif sentences:  # citations on a line of their own
            sentences[-1] = replace(sentences[-1], cited=tuple(dict.fromkeys(sentences[-1].cited + cited)))
    return sentences


def _pieces(text: str) -> list[str]:
    """Return a text cut into sentences; citations right after a full stop belong to the sentence before it."""
    pieces, start = [], 0
    for cut in _SENTENCE.finditer(text):
        after = cut[3] or ""
        if after.islower() or (after and ABBREVIATED.search(text[max(start, cut.start() - 10) : cut.start()])):
            continue
        end = max(cut.end(1), cut.end(2), cut.start())  # -1: of the other kind of stop
        pieces.append(text[start:end])
        start = cut.end()
    return [*pieces, text[start:]]


def shorten(text: str, words: int) -> str:
    """Return at most the first ``words`` words of a text."""
    tokens = text.split()
    return text if len(tokens) <= words else " ".join(tokens[:words])


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0

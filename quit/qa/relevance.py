"""Heads that ask a judge: does a document hold the answer, is it of use to a request?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

import numpy as np

from quit.models.generation import CachedGenerator, ChatRequest
from quit.models.prompting import PromptTemplate
from quit.models.protocols import Judge, JudgeItem
from quit.models.yes_no import ATTEMPTS, REPLY_TOKENS, VERSION, read_verdicts

RELEVANCE_FIELDS = frozenset({"request", "document"})


class VerdictCounts(TypedDict):
    """Verdicts that were asked for; ``unread``: those without a readable reply."""

    verdicts: int
    unread: int


class JudgedAnswers:
    """s_i by a judge of answers: the document takes the place of the candidate answer. Implements ``AnswerHead``.

    A verdict that could not be read counts as 0.
    """

    def __init__(self, judge: Judge) -> None:
        self.identity = f"judged-answers+{judge.identity}"
        self._judge = judge
        self.counts: VerdictCounts = {"verdicts": 0, "unread": 0}

    def scores(self, question: str, answers: Sequence[str], texts: Sequence[str], vectors: np.ndarray) -> np.ndarray:
        """Return the judge's probability, or 1 and 0 where it gives none."""
        if not answers or not len(texts):
            return np.zeros(len(texts))
        items = [JudgeItem(question, question, tuple(answers), text) for text in texts]
        verdicts = self._judge.verdicts(items)
        self.counts["verdicts"] += len(verdicts)
        self.counts["unread"] += sum(verdict.correct is None for verdict in verdicts)
        pairs = ((verdict.probability, float(verdict.correct is True)) for verdict in verdicts)
        return np.array([certain if probability is None else probability for probability, certain in pairs])


class YesNo:
    """A prompt answered with Yes or No; asked again up to ``attempts`` times until the reply can be read."""

    def __init__(self, generator: CachedGenerator, prompt: PromptTemplate, *, attempts: int = ATTEMPTS) -> None:
        limits = f"{REPLY_TOKENS} tokens, {attempts} attempts"
        self.identity = f"yes-no-{VERSION}/{generator.identity}|{prompt.identity}|{limits}"
        self._generator = generator
        self._prompt = prompt
        self._attempts = attempts
        self.counts: VerdictCounts = {"verdicts": 0, "unread": 0}

    def ask(self, fields: Sequence[dict[str, str]], group: str = "") -> list[bool | None]:
        """Return the verdict on each filled prompt, in order; None where no reply could be read."""
        requests = [ChatRequest(self._prompt, each, REPLY_TOKENS, group=group) for each in fields]
        replies = read_verdicts(self._generator, requests, range(self._attempts))
        verdicts = [reply.correct for reply in replies]
        self.counts["verdicts"] += len(verdicts)
        self.counts["unread"] += verdicts.count(None)
        return verdicts


class JudgedRelevance:
    """Relevance of documents to a request by a language model, 1 or 0. Implements ``AnswerHead``."""

    def __init__(self, judge: YesNo) -> None:
        self.identity = f"judged-relevance+{judge.identity}"
        self.judge = judge

    def scores(self, question: str, answers: Sequence[str], texts: Sequence[str], vectors: np.ndarray) -> np.ndarray:
        """Return 1 for each text that the model calls of use, else 0 (also where nothing could be read)."""
        verdicts = self.judge.ask([{"request": question, "document": text} for text in texts], group=question)
        return np.array([float(bool(verdict)) for verdict in verdicts])

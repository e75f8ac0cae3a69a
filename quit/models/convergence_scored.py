"""Convergence from a verdict on each (hint, candidate) pair (Mozafari et al. 2024, TriviaHG): how far a hint narrows
the candidate answers.

A language model writes the candidates and says which of them a hint refers to, as in TriviaHG.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from quit.common.arithmetic import products
from quit.common.rows import Row, first_by
from quit.models import yes_no
from quit.models.generation import CachedGenerator, ChatRequest
from quit.models.prompting import PromptTemplate
from quit.models.protocols import Drawn, Encoder, Equivalence, HintSet, Pair
from quit.settings import Convergence
from quit.text.answers import answer_key

VERSION = 3
REFERS_FIELDS = frozenset({"hint", "candidate"})
CANDIDATES_FIELDS = frozenset({"question", "answer", "count"})
PROMPT_VERSION = 2

_BULLET = re.compile(r"^\s*(?:[-*•]|\d+[.):])\s*")
TOKENS_A_CANDIDATE = 16
SAME_ANSWER = 0.5
"""Probability of equivalence to a gold answer from which an answer is no candidate."""


def convergence(distractor_scores: Sequence[int], gold_score: int, candidate_cap: int = 11) -> float:
    """Return the convergence of a hint from 0/1 scores (does it refer to this candidate?), 0 to 1, two decimals.

    Of the distractors the first ``candidate_cap - 1`` count; the gold answer is the last of the n candidates.
    0 if the hint does not refer to the gold answer, else 1 - (sum(scores) - 1) / n.
    """
    if not gold_score:
        return 0.0
    distractors = list(distractor_scores)[: candidate_cap - 1]
    n = len(distractors) + 1
    return round(1 - sum(distractors) / n, 2)


def source_convergence(value: float | None, scores: Sequence[int], settings: Convergence) -> tuple[float, str] | None:
    """Return a hint's convergence and its producer where its source says it or has ``scores`` (gold answer last)."""
    if value is not None and settings.prefer_source is True:
        return float(value), "source"
    if scores and settings.prefer_source:
        return convergence(scores[:-1], scores[-1], settings.candidate_cap), "source-scores"
    return None


class LLMConvergence:
    """Convergence by the paper's formula: a language model is asked Yes or No about each (hint, candidate) pair.

    An unreadable reply is asked for again, three times in all; then the pair counts as "does not refer": unreadable
    replies must not raise the convergence.
    """

    def __init__(self, generator: CachedGenerator, prompt: PromptTemplate, settings: Convergence) -> None:
        refers = f"refers-{yes_no.VERSION}/{generator.identity}|{prompt.identity}|{yes_no.ATTEMPTS} attempts"
        self.identity = f"scored/{VERSION}+{refers}"
        self._generator, self._prompt, self._cap = generator, prompt, settings.candidate_cap

    def values(self, items: Sequence[HintSet]) -> list[list[float]]:
        """Return the convergence of each hint of each question, 0 to 1."""
        return self.counted(items)[0]

    def counted(self, items: Sequence[HintSet]) -> tuple[list[list[float]], list[list[int]]]:
        """Return the convergence of each hint of each question, 0 to 1, and its distinct candidates without a
        verdict."""
        requests = [
            ChatRequest(self._prompt, {"hint": hint, "candidate": candidate}, yes_no.REPLY_TOKENS, group=hint)
            for item in items
            for hint in item.hints
            for candidate in (*item.distractors, item.gold)
        ]
        replies = iter(yes_no.read_verdicts(self._generator, requests, range(yes_no.ATTEMPTS)))
        values: list[list[float]] = []
        unread: list[list[int]] = []
        for item in items:
            rows = [[(name, next(replies).correct) for name in (*item.distractors, item.gold)] for _ in item.hints]
            refers = [[int(verdict is True) for _, verdict in row] for row in rows]
            values.append([convergence(row[:-1], row[-1], self._cap) for row in refers])
            unread.append([len({name for name, verdict in row if verdict is None}) for row in rows])
        return values, unread


@dataclass(eq=False)
class LLMCandidates:
    """Writes wrong answers of the right kind; what equals or is equivalent to a gold answer is left out."""

    generator: CachedGenerator
    prompt: PromptTemplate
    encoder: Encoder
    equivalence: Equivalence
    settings: Convergence

    @property
    def identity(self) -> str:
        """Model, prompt and equivalence model."""
        return f"written-{PROMPT_VERSION}/{self.generator.identity}|{self.prompt.identity}+{self.equivalence.identity}"

    def draw(self, questions: Sequence[Row]) -> list[list[Drawn]]:
        """Return at most ``candidate_cap - 1`` candidates for each row of ``questions``, in the order written.

        Each has its cosine to the nearest gold answer.
        """
        count = self.settings.candidate_cap - 1
        requests = [
            ChatRequest(
                self.prompt,
                {"question": question["question"], "answer": question["answers"][0], "count": str(count)},
                TOKENS_A_CANDIDATE * count,
                group=question["question_id"],
            )
            for question in questions
        ]
        replies = self.generator.complete(requests)
        return [
            self._candidates(question["question"], question["answers"], reply.text)[:count]
            for question, reply in zip(questions, replies, strict=True)
        ]

    def _candidates(self, question: str, answers: list[str], reply: str) -> list[Drawn]:
        gold_keys = {answer_key(answer) for answer in answers}
        texts = (_BULLET.sub("", line).strip(" \t\"'“”.,;") for line in reply.splitlines())
        by_key = first_by((answer_key(text), text) for text in texts)
        candidates = [text for key, text in by_key.items() if key and key not in gold_keys]
        if not candidates:
            return []
        pairs = [Pair(question, answer, candidate) for candidate in candidates for answer in answers]
        equal = self.equivalence.probability(pairs).reshape(len(candidates), len(answers)).max(axis=1)
        near = products(self.encoder.encode(candidates), self.encoder.encode(answers)).max(axis=1)
        similarities = zip(candidates, equal.tolist(), near.tolist(), strict=True)
        return [Drawn(candidate, "", similarity) for candidate, same, similarity in similarities if same < SAME_ANSWER]

"""Convergence by a language model, as in TriviaHG: it writes candidates and says which of them a hint refers to."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from quit.common.arithmetic import products
from quit.models.generation import CachedGenerator, ChatRequest
from quit.models.judges.gpt_eval import read_verdicts
from quit.models.prompting import PromptTemplate
from quit.models.protocols import Drawn, Encoder, Equivalence, HintPair, Pair
from quit.settings import Convergence
from quit.text.normalize import normalize_answer

REFERS_FIELDS = frozenset({"hint", "candidate"})
CANDIDATES_FIELDS = frozenset({"question", "answer", "count"})
VERSION = 2

_BULLET = re.compile(r"^\s*(?:[-*•]|\d+[.):])\s*")
_REPLY_TOKENS = 8
_TOKENS_A_CANDIDATE = 16
_ATTEMPTS = 3


class LLMHintScorer:
    """Asks Yes or No about each (hint, candidate) pair; each distinct pair once.

    An unreadable reply is asked for again, three times in all; then the pair has no score and counts as "does not
    refer": unreadable replies must not raise the convergence.
    """

    def __init__(self, generator: CachedGenerator, prompt: PromptTemplate) -> None:
        self.identity = f"refers-{VERSION}/{generator.identity}|{prompt.identity}|{_ATTEMPTS} attempts"
        self._generator = generator
        self._prompt = prompt

    def score(self, pairs: Sequence[HintPair]) -> np.ndarray:
        """Return 1 where the hint refers to the candidate, else 0, NaN where no reply could be read; shape
        (len(pairs),), float64."""

        def request(row: int, attempt: int) -> ChatRequest:
            fields = {"hint": pairs[row].hint, "candidate": pairs[row].candidate}
            return ChatRequest(self._prompt, fields, _REPLY_TOKENS, sample=attempt, group=pairs[row].hint)

        replies = read_verdicts(self._generator, request, len(pairs), range(_ATTEMPTS))
        return np.array([np.nan if refers is None else float(refers) for refers, _ in replies])


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
        return f"written-{VERSION}/{self.generator.identity}|{self.prompt.identity}+{self.equivalence.identity}"

    def draw(self, questions: Sequence[Mapping[str, Any]]) -> list[list[Drawn]]:
        """Return at most ``candidate_cap - 1`` candidates for each row of ``questions``, in the order written.

        Each has its cosine to the nearest gold answer.
        """
        count = self.settings.candidate_cap - 1
        requests = [
            ChatRequest(
                self.prompt,
                {"question": question["question"], "answer": question["answers"][0], "count": str(count)},
                _TOKENS_A_CANDIDATE * count,
                group=question["question_id"],
            )
            for question in questions
        ]
        replies = self.generator.complete(requests)
        return [
            self._drawn(question["question"], question["answers"], reply.text)[:count]
            for question, reply in zip(questions, replies, strict=True)
        ]

    def _drawn(self, question: str, answers: list[str], reply: str) -> list[Drawn]:
        gold_keys = {normalize_answer(answer) for answer in answers}
        by_key: dict[str, str] = {}
        for line in reply.splitlines():
            text = _BULLET.sub("", line).strip(" \t\"'“”.,;")
            key = normalize_answer(text)
            if key and key not in gold_keys:
                by_key.setdefault(key, text)
        candidates = list(by_key.values())
        if not candidates:
            return []
        pairs = [Pair(question, answer, candidate) for candidate in candidates for answer in answers]
        equal = self.equivalence.probability(pairs).reshape(len(candidates), len(answers)).max(axis=1)
        near = products(self.encoder.encode(candidates), self.encoder.encode(answers)).max(axis=1)
        measured = zip(candidates, equal.tolist(), near.tolist(), strict=True)
        limit = self.settings.candidate_equivalence
        return [Drawn(candidate, "", similarity) for candidate, same, similarity in measured if same < limit]

"""Describe, second half: difficulty by reference-based retrieval complexity (paper, section 3.1.3; Gabburo et al. 2024).

How many of the passages retrieved for a question hold its answer, and how close are they to the question? The corpus is the
collection's own hints. A question is hard when retrieval brings neither an answer nor passages that cover the question.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from quit.evaluate.normalize import normalize_answer
from quit.models.protocols import Encoder
from quit.settings import Difficulty

VERSION = 1


@dataclass(frozen=True, slots=True)
class Complexity:
    """Raw values and bin of one question; columns of ``descriptions`` with the same names."""

    answerability: float
    answer_share: float
    completeness: float
    similarity: float
    difficulty: float
    difficulty_bin: str


class RetrievalComplexity:
    """Difficulty of questions over a corpus of passages (here: hints)."""

    def __init__(self, corpus: Sequence[str], encoder: Encoder, settings: Difficulty) -> None:
        self._corpus = sorted(set(corpus))
        self._encoder = encoder
        self._settings = settings
        self._vectors = encoder.encode(self._corpus)
        self._normalized = [f" {normalize_answer(text)} " for text in self._corpus]
        self.identity = f"retrieval-complexity/{VERSION}/hints+{encoder.identity}"

    def of(self, question: str, answers: Sequence[str]) -> Complexity:
        """Return the complexity of one question, given its reference answers."""
        if not self._corpus:
            return self._bin(0.0, 0.0, 0.0, 0.0)
        near = self._vectors @ self._encoder.encode([question])[0]
        # Stable sort over a sorted corpus: ties go to the alphabetically first passage, whatever the source order.
        found = np.argsort(-near, kind="stable")[: self._settings.top_k]
        scores = self._holds_answer(found, answers)
        return self._bin(
            float(scores.max()),
            float((scores >= self._settings.answer_threshold).mean()),
            self._completeness(question, found),
            float(near[found].mean()),
        )

    def _holds_answer(self, found: np.ndarray, answers: Sequence[str]) -> np.ndarray:
        """s_i of each retrieved passage: 1 if it contains an answer, else how near it is to one."""
        near = (self._vectors[found] @ self._encoder.encode(list(answers)).T).max(axis=1)
        # MiniLM on TriviaHG: a hint retrieved by chance is at about 0.1 from an answer, one that speaks of it at 0.5 and more.
        low, high = self._settings.unrelated, self._settings.telling
        scores = np.clip((near - low) / max(high - low, 1e-9), 0.0, 1.0)
        keys = [f" {normalize_answer(answer)} " for answer in answers]
        contains = np.array([any(key in self._normalized[row] for key in keys) for row in found])
        return np.where(contains, 1.0, scores)

    def _completeness(self, question: str, found: np.ndarray) -> float:
        """S_D: mean over passages of the entropy of token relevance, normalised by ln |Q| (form reconstructed from the prose)."""
        asked, *passages = self._encoder.encode_tokens([question, *(self._corpus[row] for row in found)])
        if len(asked) <= 1:
            return 1.0
        entropies = []
        for passage in passages:
            relevance = np.clip((asked @ passage.T).max(axis=1), 0.0, None) if len(passage) else np.zeros(len(asked))
            total = relevance.sum()
            if total <= 0:
                entropies.append(0.0)
                continue
            share = relevance / total
            share = share[share > 0]
            entropies.append(float(-(share * np.log(share)).sum() / np.log(len(asked))))
        return float(np.mean(entropies))

    def _bin(self, answerability: float, answer_share: float, completeness: float, similarity: float) -> Complexity:
        difficulty = 1.0 - (answerability + answer_share + min(1.0, max(0.0, similarity))) / 3
        if difficulty >= self._settings.hard_from:
            name = "hard"
        elif difficulty >= self._settings.medium_from:
            name = "medium"
        else:
            name = "easy"
        return Complexity(answerability, answer_share, completeness, similarity, difficulty, name)

"""Describe, second half: difficulty by reference-based retrieval complexity (paper, section 3.1.3; Gabburo et al. 2024).

How many of the passages retrieved for a question hold its answer, and how close are they to the question? The corpus is the
collection's own hints, or one that the settings name; the first stage is hybrid, as in RRCP. A question is hard when retrieval
brings neither an answer nor passages that are close to the question.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from quit.corpora.hybrid import HybridIndex, Texts
from quit.evaluate.normalize import normalize_answer
from quit.models.protocols import Encoder
from quit.settings import Difficulty

VERSION = 2


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
    """Difficulty of questions over a corpus of passages.

    ``name`` says in ``identity`` which corpus it is. ``cache``: folder for the encodings of a corpus that outlives the build.
    """

    def __init__(
        self, corpus: Texts, encoder: Encoder, settings: Difficulty, name: str = "hints", cache: Path | None = None
    ) -> None:
        self._index = HybridIndex(
            corpus,
            encoder,
            k1=settings.bm25_k1,
            b=settings.bm25_b,
            depth=settings.depth,
            constant=settings.fusion_constant,
            cache=cache,
        )
        self._encoder = encoder
        self._settings = settings
        self.identity = f"retrieval-complexity/{VERSION}/{name}+{encoder.identity}"

    @classmethod
    def over_hints(cls, hints: Sequence[str], encoder: Encoder, settings: Difficulty) -> RetrievalComplexity:
        """Return it over hints; sorted, so that ties do not go by the sources' order."""
        return cls(sorted(set(hints)), encoder, settings)

    def of(self, questions: Sequence[str], answers: Sequence[Sequence[str]]) -> list[Complexity]:
        """Return the complexity of each question, given its reference answers."""
        retrieved = self._index.search(questions, self._settings.top_k)
        return [self._one(*each) for each in zip(questions, answers, retrieved, strict=True)]

    def _one(self, question: str, answers: Sequence[str], found: np.ndarray) -> Complexity:
        if not len(found):
            return self._bin(0.0, 0.0, 0.0, 0.0)
        texts = [self._index.texts[int(row)] for row in found]
        vectors = self._index.vectors(found)
        scores = self._holds_answer(texts, vectors, answers)
        return self._bin(
            float(scores.max()),
            float((scores >= self._settings.answer_threshold).mean()),
            self._completeness(question, texts),
            float((vectors @ self._encoder.encode([question])[0]).mean()),
        )

    def _holds_answer(self, texts: Sequence[str], vectors: np.ndarray, answers: Sequence[str]) -> np.ndarray:
        """s_i of each retrieved passage: 1 if it contains an answer, else how near it is to one."""
        near = (vectors @ self._encoder.encode(list(answers)).T).max(axis=1)
        # MiniLM on TriviaHG: a hint retrieved by chance is at about 0.1 from an answer, one that speaks of it at 0.5 and more.
        low, high = self._settings.unrelated, self._settings.telling
        scores = np.clip((near - low) / max(high - low, 1e-9), 0.0, 1.0)
        keys = [f" {normalize_answer(answer)} " for answer in answers]
        said = [f" {normalize_answer(text)} " for text in texts]
        contains = np.array([any(key in text for key in keys) for text in said])
        return np.where(contains, 1.0, scores)

    def _completeness(self, question: str, texts: Sequence[str]) -> float:
        """S_D: mean over passages of the entropy of token relevance, normalised by ln |Q| (form reconstructed from the prose)."""
        asked, *passages = self._encoder.encode_tokens([question, *texts])
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

"""Describe, second half: difficulty by reference-based retrieval complexity (paper, section 3.1.3; Gabburo et al.
2024).

How many of the passages retrieved for a question hold its answer, and how close are they to the question? The corpus is
the collection's own hints, or one that the settings name; the first stage is hybrid, as in RRCP. A question is hard
when retrieval brings neither an answer nor passages that are close to the question. With ``difficulty.counts =
"containment"``, the paper's, a passage holds the answer where it contains it as whole words; with ``"nearness"``, ours,
also where it is near it by cosine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from quit.contracts.tables import HARD_FROM, MEDIUM_FROM
from quit.models.protocols import Encoder
from quit.retrieval.complexity import ContainedOrNear, LateInteraction, contains_answer, measure
from quit.retrieval.hybrid import HybridIndex, Texts
from quit.settings import Difficulty
from quit.stages.questions import DIFFICULTY_IDENTITY

TOGETHER = 256
"""Questions whose documents' tokens are encoded together, and held in memory."""


@dataclass(frozen=True, slots=True)
class QuestionDifficulty:
    """Raw values and bin of one question; columns of ``descriptions`` with the same names."""

    answerability: float
    answer_share: float
    near_share: float
    completeness: float
    similarity: float
    difficulty: float
    difficulty_bin: str


class RetrievalComplexity:
    """Difficulty of questions over a corpus of passages.

    ``name`` says in ``identity`` which corpus it is. ``cache``: folder for the encodings of a corpus that outlives the
    build.
    """

    def __init__(
        self, corpus: Texts, encoder: Encoder, settings: Difficulty, name: str = "hints", cache: Path | None = None
    ) -> None:
        self._index = HybridIndex(corpus, encoder, cache)
        self._encoder = encoder
        self._answers = ContainedOrNear(encoder)
        self._tokens = LateInteraction(encoder)
        self._settings = settings
        self.identity = f"{DIFFICULTY_IDENTITY}/{name}+{encoder.identity}"

    @classmethod
    def over_hints(cls, hints: Sequence[str], encoder: Encoder, settings: Difficulty) -> RetrievalComplexity:
        """Return it over hints; sorted, so that ties do not go by the sources' order."""
        texts = sorted(set(hints))
        for start in range(0, len(texts), TOGETHER):  # both kinds of vectors at once, where the encoder remembers
            encoder.encode_tokens(texts[start : start + TOGETHER])
        return cls(texts, encoder, settings)

    def of(self, questions: Sequence[str], answers: Sequence[Sequence[str]]) -> list[QuestionDifficulty]:
        """Return the complexity of each question, given its reference answers."""
        retrieved = self._index.search(questions, self._settings.top_k)
        self._encoder.encode([answer for texts in answers for answer in texts])  # all at once; then they are remembered
        complexities: list[QuestionDifficulty] = []
        for start in range(0, len(questions), TOGETHER):
            block = slice(start, start + TOGETHER)
            texts = [self._index.texts[int(row)] for rows in retrieved[block] for row in rows]
            self._tokens.prepare([*questions[block], *texts])
            complexities += map(self._one, questions[block], answers[block], retrieved[block])
        return complexities

    def _one(self, question: str, answers: Sequence[str], rows: np.ndarray) -> QuestionDifficulty:
        texts = [self._index.texts[int(row)] for row in rows]
        vectors, [question_vector] = self._index.vectors(rows), self._encoder.encode([question])
        threshold = self._settings.answer_threshold
        complexity = measure(question, answers, texts, vectors, question_vector, self._answers, self._tokens, threshold)
        contained = contains_answer(texts, answers)
        share = float(contained.mean()) if len(texts) else 0.0
        if self._settings.counts == "containment":
            best, counted = float(contained.any()), share
        else:
            best, counted = complexity.answerability, complexity.answer_share
        difficulty = 1.0 - (best + counted + min(1.0, max(0.0, complexity.similarity))) / 3
        return QuestionDifficulty(
            answerability=best,
            answer_share=share,
            near_share=complexity.answer_share,
            completeness=complexity.completeness,
            similarity=complexity.similarity,
            difficulty=difficulty,
            difficulty_bin=self._bin(difficulty),
        )

    @staticmethod
    def _bin(difficulty: float) -> str:
        return "hard" if difficulty >= HARD_FROM else "medium" if difficulty >= MEDIUM_FROM else "easy"

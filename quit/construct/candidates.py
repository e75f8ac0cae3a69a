"""Candidate answers for a question whose source has none: from the collection, alike in kind and near, but not the answer.

A hint is judged by what it rules out, so its rivals must be possible answers: gold answers of questions of the same fine type,
nearest to the gold answer first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from quit.construct.question_type import question_types
from quit.evaluate.normalize import normalize_answer
from quit.models.protocols import Encoder, Equivalence, Pair
from quit.models.question_type import QuestionTypeClassifier
from quit.settings import Convergence, QuestionType

VERSION = 1


@dataclass(frozen=True, slots=True)
class Drawn:
    """A candidate drawn from the collection, with its cosine to the nearest of the question's gold answers."""

    candidate: str
    fine: str
    similarity: float


class CandidatePool:
    """The gold answers of a whole collection by the fine type of their questions.

    ``questions`` is the whole table, not a shard of it: what is drawn must not depend on the number of shards. A fine type is the
    source's own where it names one, else the classifier's.
    """

    def __init__(
        self,
        questions: pa.Table,
        classifier: QuestionTypeClassifier,
        encoder: Encoder,
        equivalence: Equivalence,
        type_settings: QuestionType,
        settings: Convergence,
    ) -> None:
        self._encoder = encoder
        self._equivalence = equivalence
        self._settings = settings
        rows = questions.select(["question_id", "answers"]).to_pylist()
        types = question_types(questions, classifier, type_settings)
        self._fine = {row["question_id"]: typed.fine for row, typed in zip(rows, types, strict=True)}
        # The first gold answer alone stands for its question: aliases of one answer would be one rival counted twice.
        members: dict[str, dict[str, str]] = {}
        for row, typed in zip(rows, types, strict=True):
            surface = row["answers"][0]
            known = members.setdefault(typed.fine, {})
            key = normalize_answer(surface)
            if key:
                known[key] = min(surface, known.get(key, surface))
        self._members = {fine: [known[key] for key in sorted(known)] for fine, known in members.items()}
        threshold = settings.candidate_equivalence
        self.identity = f"collection/{VERSION}/equivalent={threshold:g}+{equivalence.identity}+{encoder.identity}"

    def draw(self, question_id: str, question: str, answers: list[str]) -> list[Drawn]:
        """Return at most ``candidate_cap - 1`` candidates, nearest first; none where no other answer has the fine type.

        A candidate which the equivalence model takes for one of ``answers`` is left out. Raises ``KeyError`` for a question that
        is not in the collection.
        """
        fine, wanted = self._fine[question_id], self._settings.candidate_cap - 1
        own = {normalize_answer(answer) for answer in answers}
        others = [answer for answer in self._members.get(fine, ()) if normalize_answer(answer) not in own]
        if not others:
            return []
        # One product a row, in a fixed order: a matrix product's last bits vary with its shape.
        golds = self._encoder.encode(answers).astype(np.float64)
        vectors = self._encoder.encode(others).astype(np.float64)
        near = np.stack([(vectors * gold).sum(axis=1) for gold in golds]).max(axis=0)
        drawn: list[Drawn] = []
        order = np.argsort(-near, kind="stable").tolist()
        while order and len(drawn) < wanted:
            some, order = order[:wanted], order[wanted:]
            pairs = [Pair(question, answer, others[index]) for index in some for answer in answers]
            equal = self._equivalence.probability(pairs).reshape(len(some), len(answers)).max(axis=1)
            drawn += [
                Drawn(others[index], fine, float(near[index]))
                for index, probability in zip(some, equal.tolist(), strict=True)
                if probability < self._settings.candidate_equivalence
            ]
        return drawn[:wanted]

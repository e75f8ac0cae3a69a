"""Candidate answers for a question whose source has none: gold answers of other questions of the collection.

The convergence of a hint depends on the candidates it rules out, so they must be possible answers: of questions of the
same fine type, nearest to the gold answer first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from quit.common.rows import Row
from quit.models.convergence_scored import SAME_ANSWER
from quit.models.protocols import CandidateSource, Drawn, Encoder, Equivalence, Pair
from quit.models.question_type import QuestionTypeClassifier
from quit.settings import Convergence, QuestionTypeSettings, Settings
from quit.stages.questions import CANDIDATES_IDENTITY
from quit.stages.questions.question_type import question_types
from quit.text.answers import answer_key

if TYPE_CHECKING:
    from quit.models.factory import Models


def candidate_pool(questions: pa.Table, models: Models, settings: Settings) -> CandidateSource:
    """Return where the candidates of a whole collection come from, made once per run.

    ``questions``: the whole table.
    """

    def make() -> CandidateSource:
        return models.candidate_writer() or CandidatePool(
            questions,
            models.question_types,
            models.encoder,
            models.equivalence,
            settings.question_type,
            settings.convergence,
        )

    return models.shared("candidate_pool", make)


class CandidatePool:
    """The gold answers of a whole collection by the fine type of their questions.

    ``questions`` is the whole table, not a shard of it: the draw must not depend on the number of shards. A fine
    type is the source's own where it names one, else the classifier's.
    """

    def __init__(
        self,
        questions: pa.Table,
        classifier: QuestionTypeClassifier,
        encoder: Encoder,
        equivalence: Equivalence,
        type_settings: QuestionTypeSettings,
        settings: Convergence,
    ) -> None:
        self._encoder = encoder
        self._equivalence = equivalence
        self._settings = settings
        rows = questions.select(["question_id", "answers"]).to_pylist()
        types = question_types(questions, classifier, type_settings)
        self._fine = {row["question_id"]: typed.fine for row, typed in zip(rows, types, strict=True)}
        # The first gold answer alone stands for its question: aliases of one answer would count one distractor twice.
        members: dict[str, dict[str, str]] = {}
        for row, typed in zip(rows, types, strict=True):
            surface = row["answers"][0]
            forms = members.setdefault(typed.fine, {})
            key = answer_key(surface)
            if key:
                forms[key] = min(surface, forms.get(key, surface))
        encoder.encode([answer for row in rows for answer in row["answers"]])  # all at once; then they are remembered
        self._members = {fine: [forms[key] for key in sorted(forms)] for fine, forms in members.items()}
        self.identity = f"{CANDIDATES_IDENTITY}/equivalent={SAME_ANSWER:g}+{equivalence.identity}+{encoder.identity}"

    def draw(self, questions: Sequence[Row]) -> list[list[Drawn]]:
        """Return for each row of ``questions`` at most ``candidate_cap - 1`` candidates, nearest first.

        There are none where no other answer has the fine type. A candidate which the equivalence model takes for one of
        the question's answers is left out. Raises ``KeyError`` for a question that is not in the collection.
        """
        drawing = [self._nearest(row) for row in questions]
        count = self._settings.candidate_cap - 1
        while short := [question for question in drawing if question.rest and len(question.drawn) < count]:
            pairs = [pair for question in short for pair in question.pairs(count)]
            probabilities = iter(self._equivalence.probability(pairs).tolist())
            for question in short:
                question.take(count, probabilities, SAME_ANSWER)
        return [question.drawn[:count] for question in drawing]

    def _nearest(self, question: Row) -> _Drawing:
        fine, answers = self._fine[question["question_id"]], question["answers"]
        gold_keys = {answer_key(answer) for answer in answers}
        others = [answer for answer in self._members.get(fine, ()) if answer_key(answer) not in gold_keys]
        if not others:
            return _Drawing(question["question"], answers, [])
        # One product a row, in a fixed order: a matrix product's last bits vary with its shape.
        golds = self._encoder.encode(answers).astype(np.float64)
        vectors = self._encoder.encode(others).astype(np.float64)
        near = np.stack([(vectors * gold).sum(axis=1) for gold in golds]).max(axis=0)
        nearest = [Drawn(others[row], fine, float(near[row])) for row in np.argsort(-near, kind="stable").tolist()]
        return _Drawing(question["question"], answers, nearest)


@dataclass
class _Drawing:
    """A question's candidates: ``rest`` are still to be compared with its answers, nearest first."""

    question: str
    answers: list[str]
    rest: list[Drawn]
    drawn: list[Drawn] = field(default_factory=list)

    def pairs(self, count: int) -> list[Pair]:
        """Return what the equivalence model is asked about the next ``count`` candidates."""
        return [Pair(self.question, answer, drawn.candidate) for drawn in self.rest[:count] for answer in self.answers]

    def take(self, count: int, probabilities: Iterator[float], limit: float) -> None:
        """Draw those of the next ``count`` candidates whose probabilities, in the order of :meth:`pairs`, are below
        ``limit``."""
        for candidate in self.rest[:count]:
            if max([next(probabilities) for _ in self.answers]) < limit:
                self.drawn.append(candidate)
        self.rest = self.rest[count:]

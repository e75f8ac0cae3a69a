"""Describe: type and difficulty of each question that has its hints (paper, section 3.1.3)."""

from __future__ import annotations

from dataclasses import asdict

import pyarrow as pa
import pyarrow.compute as pc

import schemas
from quit.construct.difficulty import RetrievalComplexity
from quit.construct.question_type import question_types
from quit.models.protocols import Encoder
from quit.models.question_type import QuestionTypeClassifier
from quit.settings import Difficulty, QuestionType


def describe(
    questions: pa.Table,
    ranked_hints: pa.Table,
    classifier: QuestionTypeClassifier,
    encoder: Encoder,
    type_settings: QuestionType,
    difficulty_settings: Difficulty,
) -> pa.Table:
    """Return the table ``descriptions`` for the questions that have ranked hints; the corpus is all selected hints given."""
    asked = questions.filter(pc.is_in(questions.column("question_id"), ranked_hints.column("question_id").unique()))
    corpus = ranked_hints.filter(ranked_hints.column("selected")).column("hint").to_pylist()
    complexity = RetrievalComplexity(corpus, encoder, difficulty_settings)
    rows = []
    for question, typed in zip(asked.to_pylist(), question_types(asked, classifier, type_settings), strict=True):
        rows.append(
            {
                "question_id": question["question_id"],
                "coarse": typed.coarse,
                "fine": typed.fine,
                "type_confidence": typed.confidence,
                "type_producer": typed.producer,
                **asdict(complexity.of(question["question"], question["answers"])),
                "difficulty_producer": complexity.identity,
            }
        )
    return schemas.table("descriptions").from_rows(rows)

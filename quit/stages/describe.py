"""Describe: type and difficulty of each question that has its hints (paper, section 3.1.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from quit import contracts
from quit.common.cache import cache_folder
from quit.common.rows import Row
from quit.models.limits import QUESTION_TYPE, note
from quit.models.protocols import Encoder
from quit.models.question_type import QuestionTypeClassifier
from quit.settings import Difficulty, QuestionTypeSettings
from quit.stages.questions.question_type import question_types
from quit.stages.stage import Context, Tables, stage


@stage(
    "describe",
    outputs=("descriptions", "rejects"),
    sections=("question_type", "difficulty"),
    models=("question_types", "difficulty", "encoder"),
    scope="collection",
    version=2,
)
def describe_stage(context: Context, questions: pa.Table, ranked_hints: pa.Table) -> Tables:
    """Question type and difficulty."""
    models, settings = context.models, context.settings
    encoder = models.difficulty_encoder
    return describe(
        questions, ranked_hints, models.question_types, encoder, settings.question_type, settings.difficulty
    )


def describe(
    questions: pa.Table,
    ranked_hints: pa.Table,
    classifier: QuestionTypeClassifier,
    encoder: Encoder,
    type_settings: QuestionTypeSettings,
    difficulty_settings: Difficulty,
) -> dict[str, pa.Table]:
    """Return the tables ``descriptions``, for the questions that have ranked hints, and ``rejects``.

    Difficulty is measured over the corpus that the settings name (its unusable documents are the rejects), else over
    all selected hints given. Raises :class:`quit.errors.InputError` when the corpus cannot be read.
    """
    from quit.retrieval.corpus import Corpus, corpus_checksum
    from quit.stages.questions.difficulty import RetrievalComplexity

    question_ids = ranked_hints.column("question_id").unique()
    with_hints = questions.filter(pc.is_in(questions.column("question_id"), question_ids))
    rejects = []
    if difficulty_settings.corpus:
        path = Path(difficulty_settings.corpus)
        corpus = Corpus(path)
        rejects = [asdict(reject) for reject in corpus.rejects]
        complexity = RetrievalComplexity(
            corpus, encoder, difficulty_settings, f"corpus@{corpus_checksum(path)}", cache_folder("encodings")
        )
    else:
        hints = ranked_hints.filter(ranked_hints.column("selected")).column("hint").to_pylist()
        complexity = RetrievalComplexity.over_hints(hints, encoder, difficulty_settings)
    records = with_hints.to_pylist()
    complexities = complexity.of([record["question"] for record in records], [record["answers"] for record in records])
    texts = _with_hints(records, ranked_hints)
    rows = []
    for question, typed, difficulty in zip(
        records, question_types(with_hints, classifier, type_settings), complexities, strict=True
    ):
        rows.append(
            {
                "question_id": question["question_id"],
                **asdict(typed),
                **asdict(difficulty),
                "difficulty_producer": complexity.identity,
                "note": note(texts[question["question_id"]], [("question", question["question"], QUESTION_TYPE)]),
            }
        )
    return {
        "descriptions": contracts.table("descriptions").from_rows(rows),
        "rejects": contracts.table("rejects").from_rows(rejects),
    }


def _with_hints(questions: Sequence[Row], ranked_hints: pa.Table) -> dict[str, str]:
    """Return question id -> the question and its hints as one text: long enough to tell the language."""
    texts = {question["question_id"]: [question["question"]] for question in questions}
    for hint in ranked_hints.select(["question_id", "hint"]).to_pylist():
        texts[hint["question_id"]].append(hint["hint"])
    return {question_id: " ".join(parts) for question_id, parts in texts.items()}

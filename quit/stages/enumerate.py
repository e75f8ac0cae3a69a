"""Enumerate: the passages, by default every ordered selection of the hints, 325 of five (paper, section 3.2.1)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from quit.common.columns import plain
from quit.common.rows import tuples
from quit.stages.labelling.design import Subset, cosines, design_passages, extremes, hints_of
from quit.stages.stage import Context, Tables, stage


@stage("enumerate", outputs=("passages",), sections=("passages",))
def enumerate_stage(
    context: Context, questions: pa.Table, hints: pa.Table, ranked_hints: pa.Table, splits: pa.Table
) -> Tables:
    """List the ordered selections of a question's hints that are its passages."""
    # The encoder, asked for cosines, is part of the fingerprint of ``filter``.
    design = context.settings.passages
    question_hints = hints_of(plain(splits["question_id"]), hints, ranked_hints)
    text_of = dict(tuples(questions, "question_id", "question"))
    values: dict[str, np.ndarray] = {}
    if design.extremes and "cosine" in design.by:
        texts = [[row["hint"] for row in hints] for hints in question_hints.values()]
        of_questions = cosines(context.models.encoder, [text_of[key] for key in question_hints], texts)
        values = dict(zip(question_hints, of_questions, strict=True))

    def by_cosine(question_id: str, sets: Sequence[Subset]) -> list[int]:
        return extremes(values[question_id], sets, design.extremes)

    return {"passages": design_passages(design, question_hints, by_cosine)}

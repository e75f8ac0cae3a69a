"""Enumerate: every ordered selection of the hints, 325 of five (paper, section 3.2.1)."""

from __future__ import annotations

import pyarrow as pa

from quit.stages.labelling.passages import enumerate_passages
from quit.stages.stage import Context, Tables, stage


@stage("enumerate", outputs=("passages",), sections=("convergence.hints",))
def enumerate_stage(context: Context, splits: pa.Table) -> Tables:
    """List every ordered selection of a question's hints."""
    return {"passages": enumerate_passages(splits.column("question_id"), context.settings.convergence.hints)}

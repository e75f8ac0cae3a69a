"""Answers with their texts, for tests that look at every row."""

import pyarrow as pa

from quit.engine.workspace import Workspace
from quit.stages.labelling.answers import Answers


def with_texts(answers: Answers) -> list[dict]:
    """Return the rows of ``answers``, each with the cleaned answer that its number means."""
    texts = answers.distinct["answer"].take(pa.array(answers.index)).to_pylist()
    return [{**row, "answer": text} for row, text in zip(answers.rows.to_pylist(), texts, strict=True)]


def answers_in(workspace: Workspace, runs: list[str] | None = None) -> list[dict]:
    """Return the rows of a workspace's ``answers``, each with its texts (``answer``, ``raw``)."""
    distinct = workspace.read("distinct_answers", runs=runs).to_pylist()
    texts = {(row["question_id"], row["reader"], row["number"]): row for row in distinct}
    rows = workspace.read("answers", runs=runs).to_pylist()
    return [{**texts[row["question_id"], row["reader"], row["number"]], **row} for row in rows]

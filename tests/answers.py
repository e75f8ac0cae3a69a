"""Answers with their texts, for tests that look at every row, and a judge whose verdicts a test writes down."""

from collections.abc import Mapping, Sequence

import pyarrow as pa

from quit.engine.workspace import Workspace
from quit.models.protocols import JudgeItem, Verdict
from quit.stages.labelling.answers import Answers


class Rules:
    """A judge that rules by an answer's text, None for what it cannot make up its mind about; it accepts nothing else.
    ``asked``: question ids and answers."""

    name, identity = "judge", "judge@1"

    def __init__(self, verdicts: Mapping[str, bool | None]) -> None:
        self._verdicts = verdicts
        self.asked: list[tuple[str, str]] = []

    def verdicts(self, items: Sequence[JudgeItem], sample: int = 0) -> list[Verdict]:
        self.asked += [(item.question_id, item.candidate) for item in items]
        return [Verdict(self._verdicts.get(item.candidate, False), None, "") for item in items]


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

"""Answers with their texts, for tests that look at every row; a reader and a judge whose replies a test writes down."""

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from quit.engine.workspace import Workspace
from quit.models.protocols import JudgeItem, Prompt, Reply, Verdict
from quit.stages.labelling.answers import Answers


class Reads:
    """A reader whose reply follows from the prompt and the number of the sample; ``clean``: what makes an answer of it;
    ``asked``: the prompts."""

    name, identity = "scripted", "scripted@1"

    def __init__(self, reply: Callable[[Prompt, int], str], clean: Callable[[str], str] = str) -> None:
        self._reply, self._clean = reply, clean
        self.asked: list[Prompt] = []

    def answer(self, prompts: Sequence[Prompt], sample: int = 0) -> list[Reply]:
        self.asked += prompts
        return [Reply(raw, self._clean(raw)) for raw in (self._reply(prompt, sample) for prompt in prompts)]


class Rules:
    """A judge that rules by an answer's text, None for what it cannot make up its mind about; it accepts nothing else.
    ``said``: what else is in its verdicts; ``asked``: the items."""

    def __init__(self, verdicts: Mapping[str, bool | None], name: str = "judge", said: tuple = (None, "")) -> None:
        self.name, self.identity = name, f"{name}@1"
        self._verdicts, self._said = verdicts, said
        self.asked: list[JudgeItem] = []

    def verdicts(self, items: Sequence[JudgeItem], sample: int = 0) -> list[Verdict]:
        self.asked += items
        return [Verdict(self._verdicts.get(item.candidate, False), *self._said) for item in items]


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

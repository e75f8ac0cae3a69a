"""The questions of a corpus, with their decomposition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quit.errors import InputError
from quit.retrieval.built import BuiltCorpus


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its sub-questions in order. ``kind``: the source's type of it (``2hop``, ``comparison``)."""

    query_id: str
    text: str
    answers: tuple[str, ...]
    kind: str | None
    source: str
    steps: tuple[Question, ...] = ()


def questions(collection: BuiltCorpus) -> list[Question]:
    """Return the whole questions of a collection in order, each with its sub-questions by hop."""
    rows = collection.queries.to_pylist()
    steps: dict[str, list[dict]] = {}
    for row in rows:
        if row["parent_id"] is not None:
            steps.setdefault(row["parent_id"], []).append(row)

    def question_of(row: dict, step_rows: Sequence[dict]) -> Question:
        parts = tuple(question_of(step, ()) for step in sorted(step_rows, key=lambda step: step["hop"] or 0))
        return Question(row["query_id"], row["text"], tuple(row["answers"]), row["kind"], row["source"], parts)

    return [question_of(row, steps.get(row["query_id"], ())) for row in rows if row["parent_id"] is None]


def chosen(
    collection: BuiltCorpus, source: str | None = None, kind: str | None = None, limit: int | None = None
) -> list[Question]:
    """Return the first ``limit`` whole questions, of one source and kind. Raises :class:`InputError` for none."""
    every = questions(collection)
    of_source = [question for question in every if source in (None, question.source)]
    selected = [question for question in of_source if kind in (None, question.kind)][:limit]
    if not every:
        raise InputError("The corpus holds no question.")
    if of_source and not selected:
        kinds = ", ".join(sorted({question.kind or "none" for question in of_source}))
        raise InputError(f"The corpus holds no question of the kind {kind!r}; its kinds: {kinds}.")
    if not selected:
        sources = ", ".join(sorted({question.source for question in every}))
        raise InputError(f"The corpus holds no question of the source {source!r}; its sources: {sources}.")
    return selected

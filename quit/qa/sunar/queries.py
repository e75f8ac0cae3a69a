"""The questions of a run: a corpus's own, or those of a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path
from typing import Any

from quit.common.rows import first_by
from quit.errors import InputError
from quit.qa.indexes.built import BuiltCorpus
from quit.qa.opening import Question
from quit.sources.lines import json_lines


@dataclass(frozen=True, slots=True)
class Query:
    """A question.

    ``sub_questions``: its gold decomposition in order, where one is known; ``relevant``: document id to
    relevance; ``relevant_rows``: their rows in the corpus; ``kind``: the source's type of the question.
    """

    query_id: str
    text: str
    answers: tuple[str, ...] = ()
    sub_questions: tuple[str, ...] = ()
    relevant: Mapping[str, int] | None = None
    kind: str | None = None
    relevant_rows: tuple[int, ...] = ()


def of_corpus(collection: BuiltCorpus, questions: Sequence[Question], *, by_title: bool = False) -> list[Query]:
    """Return whole questions of a corpus with their decompositions and relevant documents; ``by_title``: in place of
    each, the corpus's first document with its title."""
    qrels = collection.relevant_rows()
    titles = collection.titles(range(len(collection))) if by_title else []
    first = first_by((title, row) for row, title in enumerate(titles))
    queries = []
    for question in questions:
        relevance = {row: grade for row, grade in qrels.get(question.query_id, {}).items() if grade > 0}
        if by_title:
            relevance = {first[titles[row]]: grade for row, grade in sorted(relevance.items(), key=itemgetter(1))}
        relevant = dict(zip(collection.ids(list(relevance)), relevance.values(), strict=True))
        steps = tuple(step.text for step in question.steps)
        rows = tuple(sorted(relevance))
        queries.append(Query(question.query_id, question.text, question.answers, steps, relevant, question.kind, rows))
    return queries


def of_file(path: Path, corpus_queries: Sequence[Query] = ()) -> list[Query]:
    """Return the questions of a JSONL file: {query_id | id | _id, text | question, answers? | answer?, sub_questions?}
    a line.

    A line may name a question of the corpus by its id alone; what it leaves out is that of ``corpus_queries``.
    Raises :class:`InputError` for a file or line that cannot be used.
    """
    by_id = {query.query_id: query for query in corpus_queries}
    queries: dict[str, Query] = {}
    for number, row in json_lines(path, "JSON Lines of {query_id, text, answers}"):
        where = f"{path}, line {number}"
        query = _query(row, by_id, where)
        if query.query_id in queries:
            raise InputError(f"{where}: the id {query.query_id!r} occurs twice.")
        queries[query.query_id] = query
    return list(queries.values())


def _query(row: dict[str, Any], by_id: Mapping[str, Query], where: str) -> Query:
    identity = next((row[key] for key in ("query_id", "id", "_id") if row.get(key) not in (None, "")), None)
    if not isinstance(identity, str | int):
        raise InputError(f"{where}: the question has no id (query_id, id or _id).")
    base = by_id.get(str(identity), Query(str(identity), ""))
    text = next((row[key] for key in ("text", "question") if row.get(key)), base.text)
    if not isinstance(text, str) or not text.strip():
        raise InputError(f"{where}: the question {identity!r} has no text, and the corpus has no question of that id.")
    answers = row.get("answers", row.get("answer"))
    answers, steps = [answers] if isinstance(answers, str) else answers, row.get("sub_questions")
    return replace(
        base,
        text=" ".join(text.split()),
        answers=base.answers if answers is None else _texts(answers, where, "answers"),
        sub_questions=base.sub_questions if steps is None else _texts(steps, where, "sub_questions"),
    )


def _texts(value: Any, where: str, what: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise InputError(f"{where}: {what} must be a list of texts, found {str(value)[:60]!r}.")
    return tuple(value)

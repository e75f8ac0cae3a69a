"""The documented schema of a user's own questions, as JSON Lines or Parquet: see ``schemas/question.schema.json``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from quit.common.opening import PARQUET, begins_with
from quit.common.parquet import Owner, opened
from quit.errors import InputError
from quit.sources import drafts, fields
from quit.sources.drafts import DraftHint, DraftRecord, Item
from quit.sources.fields import BadRecord
from quit.sources.files import check_file, is_given
from quit.sources.items import line_items, row_items
from quit.sources.records import SourceRecord

EXPECTED = "JSON Lines or Parquet with id, question, answers and hints or passages (schemas/question.schema.json)"
REQUIRED = ("id", "question", "answers", "hints")
WITH_PASSAGES = (*REQUIRED[:3], "passages")
READ = (*REQUIRED, "passages", "candidates", "candidate_answers", "question_type", "difficulty")
_GIVEN = "id, question, answers and hints (or passages) in each"
_HINTS = "a list of texts or of objects with 'hint'"
_PASSAGES = "a list of texts or of objects with 'text'"


def read(path: Path) -> Iterator[SourceRecord]:
    """Yield the records of a file of the documented schema: JSON Lines, a JSON array or Parquet, whatever its name.

    A file of *Context Convergence* (Mozafari, Piryani and Jatowt, SIGIR 2026; layout by its program, no such file was
    seen) is read too: `candidate_answers` of questions are candidates, those of hints scores; its replies are not read.

    One bad line rejects that line alone, with its number. Unknown keys are left out; where a required key is missing, a
    near miss among them is named. Raises ``InputError`` for a file that cannot be read or holds no usable record.
    """
    expected = _GIVEN if is_given(path.name) else EXPECTED
    items = _parquet(path) if begins_with(path, PARQUET) else line_items(path, expected)
    return drafts.records(items, "jsonl", parse, path, expected)


def refuse_nulls(path: Path, files: Iterable[Path], expected: str) -> None:
    """Raise ``InputError`` where no row of a source's Parquet files has a question, by their statistics: millions of
    such rows fit in a small file."""
    rows = 0
    for file in files:
        metadata = pq.read_metadata(file)
        for group in map(metadata.row_group, range(metadata.num_row_groups)):
            columns = {column.path_in_schema: column for column in map(group.column, range(group.num_columns))}
            facts = columns["question"].statistics if "question" in columns else None
            if facts is None or facts.null_count != group.num_rows:
                return
            rows += group.num_rows
    if rows:
        raise InputError(f"{path}: the question is null in all {rows:,} rows. Expected {expected}.")


def parse(record: dict[str, Any], key: str | None = None) -> DraftRecord:
    """Return the checked parts of one record. Raises ``BadRecord``."""
    given = bool(record.get("passages")) or (record.get("passages") is not None and not record.get("hints"))
    if given and record.get("hints"):
        raise BadRecord(
            "hints_and_passages", "The record has hints and passages: a question is labelled on one of them."
        )
    fields.need_all(record, *(WITH_PASSAGES if given else REQUIRED))
    record_id = fields.as_id(fields.need(record, "id", "a text or a whole number"), "id")
    question = fields.as_text(fields.need(record, "question", "a text"), "question")
    answers = fields.as_texts(fields.need(record, "answers", "a text or a list of texts"), "answers")
    name, expected, draft = ("passages", _PASSAGES, _passage) if given else ("hints", _HINTS, _hint)
    hints = fields.as_list(fields.rows_of(fields.need(record, name, expected)), name, expected)
    candidates = "candidates" if record.get("candidates") else "candidate_answers"
    kind = fields.as_object(record.get("question_type") or {}, "question_type")
    return DraftRecord(
        record_id,
        question,
        answers,
        [draft(hint, f"{name}[{index}]", answers) for index, hint in enumerate(hints)],
        candidates=fields.as_texts(record.get(candidates) or [], candidates),
        coarse=fields.as_label(kind.get("coarse"), "question_type.coarse"),
        fine=fields.as_label(kind.get("fine"), "question_type.fine"),
        difficulty=fields.as_label(record.get("difficulty"), "difficulty"),
        given=given,
    )


def _passage(passage: Any, name: str, answers: list[str]) -> DraftHint:
    if not isinstance(passage, dict):
        return DraftHint(passage)
    text = passage["text"] if "text" in passage else fields.need(passage, "text", "a text", f"{name}.")
    title, relevance = passage.get("title"), passage.get("relevance")
    title = fields.as_label(str(title) if isinstance(title, int) else title, f"{name}.title")
    whole = f"{title} {text}" if title and isinstance(text, str) else text or ""
    relevance = int(relevance) if isinstance(relevance, bool) else relevance
    relevance = fields.as_number(relevance, f"{name}.relevance", "a number")
    identity = passage.get("id")
    return DraftHint(
        whole,
        rank=fields.as_rank(passage.get("rank"), f"{name}.rank"),
        convergence=None if relevance is None else max(relevance, 0.0),  # TREC has -1, not judged, and -2, spam
        passage_id=None if identity is None else fields.as_id(identity, f"{name}.id"),
    )


def _hint(hint: Any, name: str, answers: list[str]) -> DraftHint:
    if not isinstance(hint, dict):
        return DraftHint(hint)
    if "hint" not in hint and "text" not in hint:
        fields.need(hint, "hint", "a text", f"{name}.")
    scores = "candidate_answers" if hint.get("scores") is None else "scores"
    return DraftHint(
        hint.get("hint") if hint.get("hint") is not None else hint.get("text"),
        rank=fields.as_rank(hint.get("rank"), f"{name}.rank"),
        convergence=fields.as_convergence(hint.get("convergence"), f"{name}.convergence"),
        url=fields.as_label(hint.get("url"), f"{name}.url"),
        scores=fields.as_scores(hint.get(scores), f"{name}.{scores}", answers),
    )


def _parquet(path: Path) -> Iterator[Item]:
    check_file(path, EXPECTED)
    with opened(path, owner=Owner(InputError, f"Expected {EXPECTED}.")) as file:
        refuse_nulls(path, [path], EXPECTED)
        names = set(file.schema_arrow.names)
    complete = names.issuperset(REQUIRED) or names.issuperset(WITH_PASSAGES)
    columns = [*names.intersection(READ)] if complete else None  # all: a near miss is named
    yield from row_items(path, EXPECTED, columns)

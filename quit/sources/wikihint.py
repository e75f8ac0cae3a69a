"""WikiHint (Mozafari, Gerhold, Jatowt, SIGIR 2025): questions with five hints written and ranked by people.

Its text holds mojibake (UTF-8 read as Latin-1) and no-break spaces; ranks are texts.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from quit.sources import SOURCES, drafts, fields
from quit.sources.drafts import DraftHint, DraftRecord
from quit.sources.items import json_items
from quit.sources.records import SourceRecord

EXPECTED = "a WikiHint file: a JSON array of objects with id, question, answer and hints"
_HINTS = "a list of objects with 'hint'"


def read(path: Path) -> Iterator[SourceRecord]:
    """Yield the records of a WikiHint JSON file: an array, or an object of id -> record or of split -> array.

    ``id``, ``question``, ``answer`` and ``hints`` are required; question, answer and hint may be objects or plain
    texts. Raises ``InputError`` for what is not JSON or holds no usable record.
    """
    return drafts.records(json_items(path, EXPECTED, SOURCES["wikihint"].marks), "wikihint", parse, path, EXPECTED)


def parse(record: dict[str, Any], key: str | None = None) -> DraftRecord:
    """Return the checked parts of one record. Raises ``BadRecord``."""
    needed = ["id", "question", "answer", "hints"]
    if key is not None:
        needed.remove("id")
    if "answers" in record:
        needed.remove("answer")
    fields.need_all(record, *needed)
    record_id = fields.record_id(record, "id", key)
    question_field = fields.need(record, "question", "an object with 'question'")
    about = question_field if isinstance(question_field, dict) else {"question": question_field}
    question = fields.as_text(fields.need(about, "question", "a text", "question."), "question.question")
    kind = fields.as_object(about.get("question_type") or {}, "question.question_type")
    answers = _answers(record)
    hints = fields.as_list(fields.need(record, "hints", _HINTS), "hints", _HINTS)
    return DraftRecord(
        record_id,
        question,
        answers,
        [_hint(hint, f"hints[{index}]") for index, hint in enumerate(hints)],
        candidates=fields.as_texts(about.get("candidate_answers") or [], "question.candidate_answers"),
        coarse=fields.as_label(kind.get("major"), "question.question_type.major"),
        fine=fields.as_label(kind.get("minor"), "question.question_type.minor"),
        difficulty=fields.as_label(about.get("difficulty"), "question.difficulty"),
    )


def _answers(record: dict[str, Any]) -> list[str]:
    value = record["answers"] if record.get("answer") is None and record.get("answers") else None
    if value is None:
        value = fields.need(record, "answer", "an object with 'answer'")
    answers: list[str] = []
    for answer in value if isinstance(value, list) else [value]:
        if isinstance(answer, dict):
            answer = fields.need(answer, "answer", "a text", "answer.")
        answers += fields.as_texts(answer, "answer.answer")
    return answers


def _hint(hint: Any, name: str) -> DraftHint:
    if not isinstance(hint, dict):
        return DraftHint(hint)
    metrics = fields.as_object(hint.get("metrics") or {}, f"{name}.metrics")
    return DraftHint(
        hint.get("hint"),
        rank=fields.as_rank(hint.get("rank"), f"{name}.rank"),
        convergence=fields.as_convergence(metrics.get("convergence"), f"{name}.metrics.convergence"),
        url=fields.as_label(hint.get("source"), f"{name}.source"),
    )

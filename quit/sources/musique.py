"""MuSiQue (Trivedi et al., TACL 2022): a question's own paragraphs are its passages, supporting ones with relevance 1.

The official JSON Lines: ``{id, question, answer, answer_aliases, answerable, paragraphs: [{idx, title, paragraph_text,
is_supporting}]}``. A passage's own id is the record's, ``-`` and ``idx``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from quit.sources import drafts, fields, jsonl
from quit.sources.drafts import DraftRecord
from quit.sources.fields import BadRecord
from quit.sources.items import line_items
from quit.sources.records import SourceRecord

EXPECTED = "MuSiQue's JSON Lines with id, question, answer and paragraphs"
_PARAGRAPHS = "a list of paragraphs"


def read(path: Path) -> Iterator[SourceRecord]:
    """Yield the questions of a file; one marked unanswerable is rejected. Raises ``InputError`` for a file that cannot
    be read or holds no usable record."""
    return drafts.records(line_items(path, EXPECTED), "musique", parse, path, EXPECTED)


def parse(record: dict[str, Any], key: str | None = None) -> DraftRecord:
    """Return the checked parts of one record. Raises ``BadRecord``."""
    fields.need_all(record, "id", "question", "answer", "paragraphs")
    if record.get("answerable") is False:
        raise BadRecord("not_answerable", "The question is marked as not answerable from its paragraphs.")
    value = fields.rows_of(fields.need(record, "paragraphs", _PARAGRAPHS))
    paragraphs = [fields.as_object(item, "paragraphs[]") for item in fields.as_list(value, "paragraphs", _PARAGRAPHS)]
    passages = [
        {
            "id": f"{record['id']}-{paragraph.get('idx', number)}",
            "title": paragraph.get("title"),
            "text": paragraph.get("paragraph_text"),
            "relevance": int(bool(paragraph.get("is_supporting"))),
        }
        for number, paragraph in enumerate(paragraphs)
    ]
    aliases = fields.as_texts(record.get("answer_aliases") or [], "answer_aliases")
    answers = [*fields.as_texts(record["answer"], "answer"), *aliases]
    question = {"id": record["id"], "question": record["question"]}
    return jsonl.parse(question | {"answers": answers, "passages": passages})

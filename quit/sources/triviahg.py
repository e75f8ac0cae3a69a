"""TriviaHG (Mozafari, Jangra, Jatowt, SIGIR 2024): questions with machine-written hints and their scores.

Reads the training, validation and test files and the evaluation files of single models, which differ in details:
``ExactAnswer`` is a text or a list with the same answer twice, and a question may have no hints at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from quit.sources import SOURCES, drafts, fields
from quit.sources.drafts import DraftHint, DraftRecord
from quit.sources.fields import BadRecord
from quit.sources.items import json_items
from quit.sources.records import SourceRecord

EXPECTED = "a TriviaHG file: a JSON array of objects with Q_ID, Question, Hints and ExactAnswer"
_TEXTS = "a list of texts"


def read(path: Path) -> Iterator[SourceRecord]:
    """Yield the records of a TriviaHG JSON file.

    ``Q_ID``, ``Question``, ``Hints`` and ``ExactAnswer`` are required. ``Scores`` and ``Convergence`` run parallel to
    ``Hints`` where they are there; types and candidates are optional. Raises ``InputError`` for what is not JSON or
    holds no usable record.
    """
    return drafts.records(json_items(path, EXPECTED, SOURCES["triviahg"].marks), "triviahg", parse, path, EXPECTED)


def parse(record: dict[str, Any], key: str | None = None) -> DraftRecord:
    """Return the checked parts of one record. Raises ``BadRecord``."""
    needed = ("Q_ID", "Question", "ExactAnswer", "Hints")
    fields.need_all(record, *(needed if key is None else needed[1:]))
    record_id = fields.record_id(record, "Q_ID", key)
    question = fields.as_text(fields.need(record, "Question", "a text"), "Question")
    answers = fields.as_texts(fields.need(record, "ExactAnswer", "a text or a list of texts"), "ExactAnswer")
    texts = fields.as_list(fields.need(record, "Hints", _TEXTS), "Hints", _TEXTS)
    scores = _parallel(record, "Scores", texts)
    convergence = _parallel(record, "Convergence", texts)
    urls = _urls(record, len(texts))
    hints = [
        DraftHint(
            text,
            convergence=fields.as_convergence(convergence[index], f"Convergence[{index}]"),
            url=urls[index],
            scores=fields.as_scores(scores[index], f"Scores[{index}]"),
        )
        for index, text in enumerate(texts)
    ]
    return DraftRecord(
        record_id,
        question,
        answers,
        hints,
        candidates=fields.as_texts(record.get("Candidates_Answers") or [], "Candidates_Answers"),
        coarse=fields.as_label(record.get("MajorType"), "MajorType"),
        fine=fields.as_label(record.get("MinorType"), "MinorType"),
        difficulty=_difficulty(record.get("Exact_Answer_Popularity")),
    )


def _parallel(record: dict[str, Any], name: str, texts: list) -> list:
    """Return the list ``name``, one entry for each hint; where the record has no such list, ``None`` for each."""
    if record.get(name) is None:
        return [None] * len(texts)
    values = fields.as_list(record[name], name, "a list with an entry for each hint")
    if len(values) != len(texts):
        detail = f"Field {name!r} has {len(values)} entries, but 'Hints' has {len(texts)}; expected one for each hint."
        raise BadRecord("lengths_differ", detail)
    return values


def _urls(record: dict[str, Any], count: int) -> list[str | None]:
    """Return ``Hints_Sources`` where it has one text for each hint; its shape is not documented."""
    sources = record.get("Hints_Sources")
    if not isinstance(sources, list) or len(sources) != count:
        return [None] * count
    return [fields.as_label(url, "Hints_Sources") if isinstance(url, str) else None for url in sources]


def _difficulty(popularity: Any) -> str | None:
    """Return TriviaHG's difficulty, which it derives from the answer's popularity: ``Easy``, ``Medium`` or ``Hard``."""
    category = popularity.get("Category") if isinstance(popularity, dict) else None
    return fields.as_label(category, "Category") if isinstance(category, str) else None

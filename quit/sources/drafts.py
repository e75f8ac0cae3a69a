"""Drafts of records, which readers parse, and what becomes of them: repaired records and rejects.

A structural fault rejects the record; a hint that is empty, boiler-plate or no text rejects that hint alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from quit.common.rows import first_by
from quit.errors import InputError
from quit.sources import fields
from quit.sources.fields import BadRecord, describe, quote
from quit.sources.files import is_given, plain_name
from quit.sources.leftovers import is_object
from quit.sources.records import RawHint, RawQuestion, Reject, SourceRecord
from quit.sources.text import clean_hint, is_boilerplate, repair
from quit.text.answers import answer_key

STAGE = "collect"


@dataclass(frozen=True, slots=True)
class Item:
    """One raw value of a file: where it is, its key if it was in an object, or why it could not be read. ``offset``:
    bytes before it in a file of lines."""

    value: Any
    position: int
    file: str
    where: str
    key: str | None = None
    fault: BadRecord | None = None
    offset: int = 0


@dataclass(slots=True)
class DraftHint:
    """A hint as the source has it; ``text`` may still be anything. ``where``: its place, for messages."""

    text: Any
    rank: int | None = None
    convergence: float | None = None
    url: str | None = None
    scores: dict[str, int] | None = None
    where: str = ""
    passage_id: str | None = None


@dataclass(slots=True)
class DraftRecord:
    """A record whose structure has been checked, but whose text has not been repaired."""

    record_id: str
    question: str
    answers: list[str]
    hints: list[DraftHint]
    candidates: list[str] = field(default_factory=list)
    coarse: str | None = None
    fine: str | None = None
    difficulty: str | None = None
    given: bool = False


def as_record(item: Item) -> dict[str, Any]:
    """Return an item's object. Raises ``BadRecord``: its own fault, or ``not_an_object``."""
    if item.fault:
        raise item.fault
    if not isinstance(item.value, dict):
        raise BadRecord("not_an_object", f"The record must be an object, but it is {describe(item.value)}.")
    return item.value


def distinct(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the texts that are not blank, one surface (the first) for each key, in order."""
    return tuple(first_by((answer_key(text), text) for text in texts if text).values())


def records(
    items: Iterable[Item], source: str, parse: Callable[[Any, str | None], DraftRecord], path: Path, expected: str
) -> Iterator[SourceRecord]:
    """Yield one ``SourceRecord`` per item: ``parse(value, key)`` checks its structure, here its text is repaired.

    Raises ``InputError`` after the last item when none was usable.
    """
    usable = 0
    reasons: Counter[str] = Counter()
    first: dict[str, str] = {}
    for item in items:
        try:
            parsed = _finish(parse(as_record(item), item.key), source, item)
            usable += 1
        except BadRecord as fault:
            reasons[fault.reason] += 1
            first.setdefault(fault.reason, f"{item.where}: {fault.detail}")
            rejected = reject(item, source, STAGE, "record", fault.reason, fault.detail, _own_id(item))
            parsed = SourceRecord(None, (rejected,))
        yield parsed
    if not usable:
        raise unusable(path, expected, reasons, first.values())


def unusable(path: Path, expected: str, reasons: Counter[str], first: Iterable[str]) -> InputError:
    """Return the error of a file without a usable record: its faults by ``reasons``, the ``first`` of them in words."""
    subject = "Your records hold" if is_given(path.name) else f"{path} holds"
    if not reasons:
        return InputError(f"{subject} no record. Expected {expected}.")
    counts = ", ".join(f"{reason} {count}" for reason, count in reasons.most_common())
    faults = " ".join(list(first)[:3])
    return InputError(f"{subject} no usable record ({counts}). Expected {expected}. First faults: {faults}")


def _finish(draft: DraftRecord, source: str, item: Item) -> SourceRecord:
    question = repair(draft.question)
    if not question:
        raise BadRecord("no_question", "The question is blank: write one, or take the record out.")
    clean = cache(repair)  # candidates come back in every hint's scores
    answers = distinct(clean(answer) for answer in draft.answers)
    if not answers:
        raise BadRecord(
            "no_answer",
            "The question has no answer: expected at least one that is not blank. Write it, or take the record out.",
        )
    if objects := [text for text in (*answers, *draft.candidates) if is_object(text)]:
        raise BadRecord("wrong_type", f"An answer or candidate {_object(objects[0])}.")
    what = "passage" if draft.given else "hint"
    if len(draft.hints) > fields.MAX_PARTS:
        raise BadRecord("too_many", f"The record has {len(draft.hints)} {what}s; expected at most {fields.MAX_PARTS}.")
    hints: list[RawHint] = []
    rejects: list[Reject] = []
    for number, hint in enumerate(draft.hints, 1):
        try:
            hints.append(_hint(hint, draft.given, clean))
        except BadRecord as fault:
            detail = f"{hint.where or f'{what.capitalize()} {number} of the record'} {fault.detail}."
            rejects.append(reject(item, source, STAGE, "hint", fault.reason, detail, draft.record_id))
    return SourceRecord(
        RawQuestion(
            source=source,
            file=plain_name(item.file),
            position=item.position,
            record_id=draft.record_id,
            question=question,
            answers=answers,
            hints=tuple(hints),
            candidates=distinct(clean(candidate) for candidate in draft.candidates or _scored(draft.hints)),
            coarse=draft.coarse,
            fine=draft.fine,
            difficulty=draft.difficulty,
            given=draft.given,
        ),
        tuple(rejects),
    )


def _object(text: str) -> str:
    """Return what is wrong with an object in the place of a text."""
    return f"is an object written as a text, {quote(text)}: write its text alone, or the records as JSON Lines"


def _scored(hints: list[DraftHint]) -> list[str]:
    """Return the candidates that hints were scored against, for sources that do not list them."""
    return list(dict.fromkeys(candidate for hint in hints for candidate in hint.scores or {}))


def _hint(hint: DraftHint, given: bool, clean: Callable[[str], str]) -> RawHint:
    """Return a hint repaired. Raises ``BadRecord``, whose detail says what is wrong with it alone."""
    text = "" if hint.text is None else hint.text
    if not isinstance(text, str):
        raise BadRecord("wrong_type", f"must be a text, but it is {describe(text)}")
    if len(text) > fields.MAX_TEXT:
        raise BadRecord("too_long", fields.too_long(text))
    text = repair(text) if given else clean_hint(text)
    if not text:
        raise BadRecord("empty_hint", "is empty")
    if not given and is_boilerplate(text):
        raise BadRecord("boilerplate_hint", f"says nothing about the answer: {quote(text)}")
    if is_object(text):
        raise BadRecord("wrong_type", _object(text))
    scores = [(clean(candidate), score) for candidate, score in (hint.scores or {}).items() if clean(candidate)]
    name = (hint.passage_id or "") if given else None
    return RawHint(text, hint.rank, hint.convergence, hint.url, fields.gold_last(scores) or None, name)


def reject(item: Item, source: str, stage: str, kind: str, reason: str, detail: str, record_id: str | None) -> Reject:
    """Return the reject of an item or of a part of it; its detail begins with the place in the file."""
    where = plain_name(item.file), item.position
    return Reject(stage, kind, reason, f"{item.where}: {detail}", source, *where, record_id)


def _own_id(item: Item) -> str | None:
    """Return the id of a record that could not be used, as far as it has one."""
    ids = [item.value.get(name) for name in ("Q_ID", "id", "q_id")] if isinstance(item.value, dict) else []
    for value in [*ids, item.key]:
        if isinstance(value, str | int) and not isinstance(value, bool):
            try:
                return fields.as_id(value, "id")
            except BadRecord:
                continue
    return None

"""Checks of fields, shared by all readers, with a reason for each fault.

Quotations of input are cut to 80 characters and escaped, since terminals and logs show them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from contextlib import suppress
from datetime import date
from difflib import get_close_matches
from typing import Any

from quit.common.rows import first_by
from quit.sources.leftovers import listed
from quit.sources.text import repair
from quit.text.answers import answer_key

MAX_QUOTE = 80
MAX_ID = 200
MAX_KEYS = 10  # of a record, in a message
MAX_PARTS = 1000
"""A record with more hints or candidates than this is a fault of the file (a column in one cell), not a question."""

MAX_TEXT = 100_000
"""Characters of one text: a book's chapter is no hint, and repairing or comparing a text of millions takes minutes."""
_HUGE = 10**40  # turning longer numbers into text takes long, and Python refuses the longest


class BadRecord(Exception):
    """A record that cannot be used: a short ``reason`` code and a ``detail`` in words. Never leaves a reader."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


def quote(value: str) -> str:
    """Return ``value`` in quotes, control characters escaped, cut to 80 characters."""
    text = repr(value[:MAX_QUOTE])
    if len(value) > MAX_QUOTE or len(text) > MAX_QUOTE + 2:
        text = text[: MAX_QUOTE - 1].rstrip("\\'\"") + "…" + text[0]
    return text


def describe(value: Any) -> str:
    """Return a JSON-like value in words: ``the number 3``, ``a list of 4``, ``null``."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case int() if abs(value) >= _HUGE:
            return "a huge number"
        case int() | float():
            return f"the number {value!r}"
        case str():
            return f"the text {quote(value)}"
        case list() | tuple():
            return f"a list of {len(value)}"
        case dict():
            return "an object"
        case date():  # Arrow reads such texts of a JSON file so
            return "a date, which is no text (a JSON Lines file can be read as jsonl:FILE)"
    return f"a {type(value).__name__}"


def wrong_type(name: str, expected: str, value: Any) -> BadRecord:
    """Return the fault of a field ``name`` that is not ``expected``."""
    return BadRecord("wrong_type", f"Field {name!r} must be {expected}, but it is {describe(value)}.")


def need(record: dict, name: str, expected: str, path: str = "") -> Any:
    """Return ``record[name]``. Raises ``BadRecord`` (``missing_field``) naming a near miss among the keys."""
    value = record.get(name)
    if value is not None:
        return value
    full = f"{path}{name}"
    if name in record:
        raise BadRecord("missing_field", f"Field {full!r} is null; expected {expected}.")
    raise BadRecord("missing_field", f"Field {full!r} is missing; expected {expected}.{_instead(record, [name])}")


def need_all(record: dict, *names: str) -> None:
    """Raise ``BadRecord`` (``missing_field``) where a record lacks several fields, naming them all; one is left to
    :func:`need`."""
    missing = [name for name in names if name not in record]
    if len(missing) > 1:
        text = f"Fields {', '.join(map(repr, missing))} are missing.{_instead(record, missing)}"
        raise BadRecord("missing_field", text)


def _instead(record: dict, missing: Sequence[str]) -> str:
    """Return what a record has in place of missing fields, and which of that may be meant by them."""
    keys = first_by((key.lower(), key) for key in record if isinstance(key, str))
    matches = {name: get_close_matches(name.lower(), keys, n=1, cutoff=0.7) for name in missing}
    near = {name: keys[match[0]] for name, match in matches.items() if match}
    others = list(near.values() if len(near) == len(missing) else record)
    names = [quote(str(key)) for key in others[:MAX_KEYS]]
    if len(others) > MAX_KEYS:
        names.append("...")
    meant = f": did you mean {', '.join(map(repr, near))}?" if near else "."
    text = f" The record has {', '.join(names) or 'no field'}{meant}"
    if any(name.lower() == "hints" for name in missing if name not in near):
        text += " Without hints it is no source."
    return text


def as_object(value: Any, name: str) -> dict:
    """Return ``value`` if it is an object. Raises ``BadRecord`` (``wrong_type``)."""
    if not isinstance(value, dict):
        raise wrong_type(name, "an object", value)
    return value


def as_list(value: Any, name: str, expected: str) -> list:
    """Return ``value`` if it is a list of a sane length. Raises ``BadRecord`` (``wrong_type``, ``too_many``)."""
    if not isinstance(value, list):
        raise wrong_type(name, expected, value)
    if len(value) > MAX_PARTS:
        raise BadRecord("too_many", f"Field {name!r} has {len(value)} entries; expected at most {MAX_PARTS}.")
    return value


def transposed(columns: dict[str, Any]) -> Any:
    """Return a list of objects for an object of lists, which is what ``datasets`` makes of a sequence of objects."""
    lists = [column for column in columns.values() if isinstance(column, list)]
    if len(lists) != len(columns) or len({len(column) for column in lists}) != 1:
        return columns
    return [dict(zip(columns, values, strict=True)) for values in zip(*lists, strict=True)]


def rows_of(value: Any, *names: str) -> Any:
    """Return lists of the values of ``names`` for an object of lists, as the hub has what a file has as lists of lists;
    either also as a JSON text in a cell. Anything else comes back as it is."""
    if isinstance(value, str):
        with suppress(ValueError, RecursionError):
            value = json.loads(value)
    rows = transposed(value) if isinstance(value, dict) else value
    if not (names and isinstance(rows, list)) or any(not isinstance(row, dict) or {*row} != {*names} for row in rows):
        return rows
    return [[row[name] for name in names] for row in rows]


def as_id(value: Any, name: str) -> str:
    """Return an id as text. Raises ``BadRecord`` (``missing_field``, ``wrong_type``, ``bad_value``)."""
    value = int(value) if isinstance(value, float) and value.is_integer() else value  # a column with gaps, in pandas
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise wrong_type(name, "a text or a whole number", value)
    if isinstance(value, int) and abs(value) >= _HUGE:
        raise BadRecord("bad_value", f"Field {name!r} is {describe(value)}: write an id of up to {MAX_ID} characters.")
    text = repair(as_text(value, name) if isinstance(value, str) else str(value))
    if not text:
        raise BadRecord("missing_field", f"Field {name!r} is blank; expected the record's id.")
    if len(text) > MAX_ID:
        raise BadRecord("bad_value", f"Field {name!r} is longer than {MAX_ID} characters: {quote(text)}.")
    return text


def record_id(record: dict, name: str, key: str | None) -> str:
    """Return a record's own id, else its key in an object of records. Raises as :func:`need` and :func:`as_id`."""
    return as_id(key if key is not None and name not in record else need(record, name, "an id"), name)


def as_text(value: Any, name: str) -> str:
    """Return ``value`` if it is text of a sane length. Raises ``BadRecord`` (``wrong_type``, ``too_long``)."""
    if not isinstance(value, str):
        raise wrong_type(name, "a text", value)
    if len(value) > MAX_TEXT:
        raise BadRecord("too_long", f"Field {name!r} {too_long(value)}.")
    return value


def too_long(text: str) -> str:
    return f"has {len(text):,} characters; expected at most {MAX_TEXT:,}: {quote(text)}"


def as_label(value: Any, name: str) -> str | None:
    """Return an optional text, repaired; null and blank are none. Raises ``BadRecord`` (``wrong_type``)."""
    return None if value is None else repair(as_text(value, name)) or None


def as_texts(value: Any, name: str) -> list[str]:
    """Return a text or a list of texts as a list, without null entries; a list written as a text is a list. Raises as
    :func:`as_list`, :func:`as_text`."""
    if isinstance(value, str):
        return [value] if (texts := listed(as_text(value, name))) is None else texts
    expected = "a text or a list of texts"
    entries = as_list(value, name, expected)
    for entry in entries:
        if entry is not None and not isinstance(entry, str):
            raise BadRecord(
                "wrong_type", f"Field {name!r} must be {expected}, but one of its entries is {describe(entry)}."
            )
    return [as_text(entry, name) for entry in entries if entry is not None]


def as_number(value: Any, name: str, expected: str) -> float | None:
    """Return an optional number; null, NaN and blank are none, numbers written as text are taken.

    Raises ``BadRecord`` (``wrong_type``).
    """
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise wrong_type(name, expected, value)
    try:
        number = float(value)
    except (ValueError, OverflowError):
        raise wrong_type(name, expected, value) from None
    return None if math.isnan(number) else number


def as_convergence(value: Any, name: str) -> float | None:
    """Return an optional convergence. Raises ``BadRecord`` (``wrong_type``, ``bad_value`` outside 0 to 1)."""
    number = as_number(value, name, "a number from 0 to 1")
    if number is not None and not 0 <= number <= 1:
        raise BadRecord("bad_value", f"Field {name!r} must be from 0 to 1, but it is {describe(value)}.")
    return number


def as_rank(value: Any, name: str) -> int | None:
    """Return an optional rank (WikiHint writes it as text). Raises ``BadRecord`` (``wrong_type``, ``bad_value``)."""
    number = as_number(value, name, "a whole number, the lowest is best")
    if number is None:
        return None
    if not 0 <= number < 2**15 or number != int(number):
        raise BadRecord("bad_value", f"Field {name!r} must be a whole number from 0, but it is {describe(value)}.")
    return int(number)


def as_scores(value: Any, name: str, answers: Sequence[str] = ()) -> dict[str, int] | None:
    """Return optional scores as ``{candidate: 0 or 1}`` in the source's order; a candidate without a score is left out,
    except the gold answer, which needs one. It is the last candidate that is one of ``answers`` by key,
    else the last, and comes last. Equal candidates: see :func:`gold_last`.

    Takes an object, a list of ``{candidate, score}`` or a list of pairs (how Arrow reads a map column).
    Raises ``BadRecord`` (``wrong_type``, ``bad_value``, ``too_many``).
    """
    if value is None:
        return None
    expected = "an object of candidate answers and 0 or 1"
    pairs: list[Any] = []
    for entry in as_list(list(value.items()) if isinstance(value, dict) else value, name, expected):
        if isinstance(entry, dict) and {"candidate", "score"} <= entry.keys():
            pairs.append((entry["candidate"], entry["score"]))
        elif isinstance(entry, list | tuple) and len(entry) == 2:
            pairs.append(entry)
        else:
            raise wrong_type(name, expected, value)
    forms = {answer_key(answer) for answer in answers}
    golds = [pair for pair in pairs if isinstance(pair[0], str) and answer_key(pair[0]) in forms] or pairs[-1:]
    scored = [pair for pair in golds if pair[1] is not None]
    if golds and not scored:
        raise BadRecord("bad_value", f"Field {name!r} has no score of {describe(golds[-1][0])}, the gold answer.")
    pairs += scored[-1:]
    scores: list[tuple[str, int]] = []
    for candidate, score in pairs:
        if score is None:
            continue
        if not isinstance(candidate, str) or not isinstance(score, bool | int | float):
            raise wrong_type(name, expected, score if isinstance(candidate, str) else candidate)
        if score not in (0, 1):
            raise BadRecord(
                "bad_value", f"Field {name!r} must hold only 0 and 1, but {quote(candidate)} has {describe(score)}."
            )
        scores.append((as_text(candidate, name), int(score)))
    if scores and not repair(scores[-1][0]):
        raise BadRecord("bad_value", f"Field {name!r} has a blank last candidate: write the gold answer there.")
    return gold_last(scores)


def gold_last(scores: Sequence[tuple[str, int]]) -> dict[str, int]:
    """Return candidate -> score, in order. Of equal candidates the first counts; the last of all, the gold answer,
    stays the last, with its own score."""
    score_of = first_by(scores)
    if scores:
        candidate, score = scores[-1]
        del score_of[candidate]
        score_of[candidate] = score
    return score_of

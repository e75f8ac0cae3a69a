"""A user's own questions as a table: CSV with commas, semicolons (Excel in much of Europe) or tabs."""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from quit.common.safe import text_of_cell
from quit.errors import InputError
from quit.sources import drafts, fields
from quit.sources.drafts import DraftHint, DraftRecord, Item
from quit.sources.fields import BadRecord, quote
from quit.sources.files import MAX_WHOLE, read_bytes
from quit.sources.leftovers import listed
from quit.sources.records import SourceRecord
from quit.sources.text import repair

EXPECTED = (
    "CSV in UTF-8 whose first row names the columns id, question, answer and hint (or hint1, hint2, ...) or passage"
)
REQUIRED = ("id", "question", "answer", "hint")
SEVERAL = "|"
"""Stands between several answers, hints or candidates in one cell."""

_NAME = re.compile(r"(id|question|passage[ _-]?id)|(answer|hint|candidate|passage)s?[ _-]?\d*", re.IGNORECASE)
_EXCELS_MARK = re.compile(r"\Asep=.(?=\r?\n)")  # a first line that tells Excel what separates cells
csv.field_size_limit(MAX_WHOLE)  # a cell that is too long costs its question, not the file


@dataclass(slots=True)
class _CsvQuestion:
    """The rows with one id. ``hints``: (text, where it is, own id of a passage); ``given``: they are passages."""

    record_id: str
    row: int
    question: str = ""
    answers: list[str] = field(default_factory=list)
    hints: list[tuple[str, str, str | None]] = field(default_factory=list)
    given: bool = False
    candidates: list[str] = field(default_factory=list)


def read(path: Path) -> Iterator[SourceRecord]:
    """Yield the questions of a CSV file. Its first row names the columns: ``id``, ``question``, ``answer`` and ``hint``
    are required, ``candidate`` is optional; others are not read.

    Rows with the same id are one question. So a file has one hint per row, or one question per row with columns
    ``hint1``, ``hint2`` and so on; in place of hints, a ``passage`` per row, with ``passage_id`` if it has one.
    ``|`` separates several answers, hints or candidates in one cell; ``answer2`` or ``candidate2`` work too, and a
    list as Python, JSON or NumPy print it. In further rows of a question everything except the hint may be blank.
    Commas, semicolons or tabs separate cells, as the first row shows. The file is UTF-8, or what Excel calls
    Unicode text. Raises ``InputError`` for another encoding, a missing column, a quote that is
    never closed, or a file without a usable record.
    """
    return drafts.records(_items(path), "csv", _parse, path, EXPECTED)


def column_notes(path: Path) -> Iterator[str]:
    """Yield a sentence for each column that is not read but has nearly the name of one that is."""
    number, header, _ = _header(path, _text(path))
    read_names = {_column(name) for name in header}
    for name in header:
        near = get_close_matches(name.lower(), {*REQUIRED, "candidate"} - read_names, n=1, cutoff=0.7)
        if near and not _column(name):
            yield f"row {number}: The column {quote(name)} is not read: did you mean {near[0]!r}?"


def _parse(record: dict[str, Any], key: str | None = None) -> DraftRecord:
    rows: _CsvQuestion = record["rows"]
    hints = [DraftHint(text, where=where, passage_id=name) for text, where, name in rows.hints]
    parts = rows.record_id, rows.question, rows.answers, hints, rows.candidates
    return DraftRecord(*parts, given=rows.given)


def _items(path: Path) -> Iterator[Item]:
    text = _text(path)
    first, header, mark = _header(path, text)
    columns, last_named = [_column(name) for name in header], max(at for at, name in enumerate(header, 1) if name)
    items: list[Item] = []
    questions: dict[str, _CsvQuestion] = {}
    faults: dict[str, tuple[int, BadRecord]] = {}  # of questions whose first row could not be taken
    last = ""
    for number, row in _rows(path, text, mark):
        if number <= first or not any(cell.strip() for cell in row):
            continue
        cells = [
            (kind, name, cell)
            for kind, name, cell in zip(columns, header, map(text_of_cell, row), strict=False)
            if cell.strip()
        ]
        try:
            above, last = last, ""  # a row that has no id of its own never continues one with a bad id
            last = _id(cells, above)
            if last in faults:
                raise BadRecord(
                    faults[last][1].reason, f"The first row of its question, {faults[last][0]}, is at fault."
                )
            if any(cell.strip() for cell in row[last_named:]):
                raise BadRecord("lengths_differ", _surplus(len(row), last_named, mark))
            for kind, name, cell in cells:
                if kind not in ("", "hint", "passage"):  # not read; a long hint costs itself alone
                    fields.as_text(cell, name)
            if last not in questions:
                questions[last] = _CsvQuestion(last, number, given="passage" in columns)
                value = {"id": last, "rows": questions[last]}  # to which later rows may be added
                items.append(Item(value, number - 1, path.name, f"row {number}"))
            _add(questions[last], cells, number)
        except BadRecord as fault:
            if last and last not in questions:
                faults.setdefault(last, (number, fault))
            items.append(Item(None, number - 1, path.name, f"row {number}", fault=fault))
    yield from items


def _id(cells: list[tuple[str, str, str]], last: str) -> str:
    """Return a row's id; a row without id and question belongs to the row above."""
    by_kind = {kind: cell for kind, _, cell in cells}
    if "id" in by_kind:
        return fields.as_id(by_kind["id"], "id")
    if not last or "question" in by_kind:
        raise BadRecord("missing_field", "The column 'id' is blank: give each question its own id.")
    return last


def _add(question: _CsvQuestion, cells: list[tuple[str, str, str]], number: int) -> None:
    """Add a row's cells (kind, column, text) to its question. Raises ``BadRecord``."""
    for kind, name, cell in cells:
        if kind == "question" and question.question and repair(cell) != repair(question.question):
            raise BadRecord(
                "duplicate_id",
                f"The column {quote(name)} is {quote(cell)}, but row {question.row} has the same id "
                f"{quote(question.record_id)} and another question: give each question its own id.",
            )
    for kind, name, cell in cells:
        parts = [part for part in _several(cell) if part.strip()]
        match kind:
            case "question":
                question.question = question.question or cell
            case "answer":
                question.answers += [part for part in parts if part not in question.answers]
            case "candidate":
                question.candidates += [part for part in parts if part not in question.candidates]
            case "hint":
                where = f"The hint in row {number}, column {quote(name)},"
                question.hints += [(part, where, None) for part in parts]
            case "passage":
                passage_id = next((cell for kind, _, cell in cells if kind == "passage_id"), None)
                where = f"The passage in row {number}, column {quote(name)},"
                question.hints.append((cell, where, passage_id and fields.as_id(passage_id, "passage_id")))


def _several(cell: str) -> list[str]:
    """Return the texts of a cell: a JSON list, as ``quit export --format csv`` writes, or separated by ``|``."""
    if cell.lstrip().startswith('["'):
        with suppress(ValueError, RecursionError):
            texts = json.loads(cell)
            if isinstance(texts, list) and all(isinstance(text, str) for text in texts):
                return texts
    return cell.split(SEVERAL) if (texts := listed(cell)) is None else texts


def _surplus(cells: int, columns: int, mark: str) -> str:
    name = {",": "comma", ";": "semicolon", "\t": "tab"}[mark]
    return f'The row has {cells} cells, but there are {columns} columns: put a text with a {name} in it into "quotes".'


def _text(path: Path) -> str:
    data = read_bytes(path, EXPECTED).removeprefix(codecs.BOM_UTF8)
    wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        return _EXCELS_MARK.sub("", data.decode("utf-16" if wide else "utf-8"))
    except UnicodeDecodeError as error:
        if wide:
            raise InputError(f"{path} is Excel's Unicode text, and cut off or damaged. Save the file again.") from None
        line = data.count(b"\n", 0, error.start) + 1
        around = data[data.rfind(b"\n", 0, error.start) + 1 :][:2000].splitlines()[0]
        start = error.start - data.rfind(b"\n", 0, error.start) - 1
        context = around[max(0, start - 15) : start + 15].decode("cp1252", "replace")
        raise InputError(
            f"{path}, line {line} is no UTF-8 text (as Windows-1252 it would read {quote(context)}). Save the file "
            "again: in Excel as 'CSV UTF-8', in LibreOffice with the character set UTF-8."
        ) from None


def _header(path: Path, text: str) -> tuple[int, list[str], str]:
    """Return the header's row, the names in it and what separates cells: what gives the most columns that are read."""
    headers = {mark: _first_row(text, mark) for mark in ",;\t"}
    mark = max(headers, key=lambda mark: sum(bool(_column(name)) for name in headers[mark][1]))
    number, header = headers[mark]
    counts = Counter(filter(None, map(_column, header)))
    if counts["hint"] and counts["passage"]:
        raise InputError(f"{path}, row {number} names hints and passages. One of them is labelled: rename the other.")
    if missing := [name for name in REQUIRED if not counts[name] and not (name == "hint" and counts["passage"])]:
        near = get_close_matches(missing[0], [name for name in header if not _column(name)], n=1, cutoff=0.7)
        meant = f" Is {quote(near[0])} meant?" if near else ""
        columns = ", ".join(quote(name) for name in header[:20] if name) or "no names"
        raise InputError(
            f"{path}, row {number} has no column {', '.join(map(repr, missing))}; it has {columns}.{meant} Expected "
            f"{EXPECTED}."
        )
    if twice := [name for name in ("id", "question") if counts[name] > 1]:
        raise InputError(f"{path}, row {number} has the column {twice[0]!r} twice: rename one of them.")
    return number, header, mark


def _first_row(text: str, mark: str) -> tuple[int, list[str]]:
    """Return the first row that is not blank, and its number."""
    with suppress(csv.Error):  # with another mark the quotes may fit
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=mark, skipinitialspace=mark != "\t")
        for number, row in enumerate(rows, 1):
            if any(cell.strip() for cell in row):
                return number, [cell.strip() for cell in row]
    return 1, []


def _rows(path: Path, text: str, mark: str) -> Iterator[tuple[int, list[str]]]:
    """Yield each row with its number, from 1 as spreadsheets count. Raises ``InputError`` for a broken quote, after
    which no row can be trusted."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=mark, skipinitialspace=mark != "\t", strict=True)
    number = 0
    try:
        for number, row in enumerate(reader, 1):
            yield number, row
    except csv.Error as error:
        raise InputError(
            f'{path}, row {number + 1} (it ends at line {reader.line_num}) cannot be read: {error}. Is a quote (") '
            "missing, or one too many? A quote within a quoted cell is written twice."
        ) from None


def _column(name: str) -> str:
    """Return what a column holds: a name of ``REQUIRED``, ``candidate``, or "" for one that is not read."""
    match = _NAME.fullmatch(name.strip())
    return re.sub("[ -]", "_", (match[1] or match[2]).lower()) if match else ""

"""Runs and qrels as TREC, other programs and people write them; bad lines are named. Ids are in NFC."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from quit.common.progress import advance
from quit.common.rows import first_by
from quit.errors import InputError
from quit.retrieval.records import clean_id
from quit.sources.fields import describe, quote
from quit.sources.files import check_file, first_mark, reading
from quit.sources.json_text import each_once, read_json
from quit.text.words import counted

RUN = (
    "a run: lines of question Q0 passage rank score name (TREC) or question passage rank (MS MARCO), with spaces or "
    "tabs between, or JSON, {question: {passage: score}} or {question: [passage, ...]}; also in gzip"
)
QRELS = "a TREC qrels file: question 0 passage label, with spaces or tabs between"
HIGHEST = float(np.finfo(np.float32).max)


def read_run(path: Path) -> tuple[str, dict[str, dict[str, float]]]:
    """Return the name of a run (its first line's, "" without one) and question -> passage -> score, in the order of the
    file; where that has ranks alone, the score is 1 / rank.

    Raises ``InputError`` that names the line for anything else than :data:`RUN`, a score that is no finite number, and
    a passage twice for one question. JSON is read whole, up to 2 GiB.
    """
    check_file(path, RUN)
    tag, ranked, columns = "", dict[str, dict[str, float]](), 0
    if first_mark(path, RUN) in (b"{", b"["):
        return tag, _json_scores(path)
    for number, fields in _lines(path, RUN, (6, 3)):
        where = f"{path}, line {number}"
        if len(fields) != (columns := columns or len(fields)):
            raise InputError(f"{where} has {counted(len(fields), 'column')}, the lines before {columns}.")
        if columns == 6:
            question, _, passage, _, score, name = fields
            _add(ranked, question, passage, score, where, "the score, column 5,")
            tag = tag or name
        else:
            question, passage, rank = fields
            if not (rank.isascii() and rank.isdigit() and len(rank) < 10 and int(rank)):
                raise InputError(f"{where}: the rank, column 3, is {quote(rank)}; expected a whole number from 1.")
            _add(ranked, question, passage, str(1 / int(rank)), where, "the rank, column 3,")
    return tag, ranked


def _json_scores(path: Path) -> dict[str, dict[str, float]]:
    value = read_json(path, RUN, each_once(path))
    if not isinstance(value, dict):
        raise InputError(f"{path} holds {describe(value)}; expected {RUN}.")
    scores: dict[str, dict[str, float]] = {}
    for name, ranked in value.items():
        where = f"{path}: {quote(name)}"
        if isinstance(ranked, list) and all(type(each) in (str, int) for each in ranked):
            ranked = first_by((str(each), 1 / rank) for rank, each in enumerate(ranked, start=1))
        elif not isinstance(ranked, dict):
            raise InputError(f"{where} has {describe(ranked)}; expected {RUN}.")
        of_name = scores.setdefault(clean_id(name), {})
        for passage, score in ranked.items():
            if type(score) not in (int, float) or not abs(score) < HIGHEST:
                value_in_words = "NaN or null" if score is None else describe(score)
                raise InputError(f"{where} has {value_in_words} for {quote(passage)}; expected a finite score.")
            if clean_id(passage) in of_name:
                raise InputError(f"{where} has {quote(passage)} a second time: leave one out.")
            of_name[clean_id(passage)] = score
    return scores


def run_line(question_id: str, passage_id: str, rank: int, score: Any, name: str) -> str:
    """Return a line of a run."""
    return f"{question_id} Q0 {passage_id} {rank} {score:.9g} {name}\n"


def qrels_line(question_id: str, passage_id: str, label: int) -> str:
    """Return a line of qrels."""
    return f"{question_id} 0 {passage_id} {label}\n"


def best_first(scores: Mapping[str, float]) -> dict[str, np.float32]:
    """Return the passages of a question in the order of trec_eval, which keeps scores as float32: equal ones by id,
    later ids first."""
    with np.errstate(over="ignore"):
        by_name = {name: np.float32(score) for name, score in scores.items()}
    names = sorted(by_name, key=lambda name: (by_name[name], name.encode()), reverse=True)
    return {name: by_name[name] for name in names}


def read_qrels(path: Path) -> dict[str, dict[str, int]]:
    """Return question -> passage -> label. Raises ``InputError`` as :func:`read_run` does, for four columns, and for a
    label that is no whole number."""
    labelled: dict[str, dict[str, float]] = {}
    for number, (question, _, passage, label) in _lines(path, QRELS, (4,)):
        where = f"{path}, line {number}"
        _add(labelled, question, passage, label, where, "the label, column 4,")
        if not float(label).is_integer():
            raise InputError(f"{where}: the label, column 4, is {quote(label)}; expected a whole number.")
    return {query: {name: int(label) for name, label in labels.items()} for query, labels in labelled.items()}


def _lines(path: Path, expected: str, columns: Sequence[int]) -> Iterator[tuple[int, list[str]]]:
    """Yield number and columns of each line that is not blank."""
    check_file(path, expected)
    empty = True
    with reading(path, expected) as file:
        for number, line in enumerate(file, 1):
            try:
                fields = line.decode("utf-8-sig" if number == 1 else "utf-8").split()
            except UnicodeDecodeError:
                raise InputError(f"{path}, line {number} is no UTF-8 text; expected {expected}.") from None
            if not fields:
                continue
            if len(fields) not in columns:
                text = f"{counted(len(fields), 'column')} ({quote(' '.join(fields))})"
                raise InputError(f"{path}, line {number} has {text}; expected {expected}.")
            yield number, fields
            empty = False
            advance("lines")
    if empty:
        raise InputError(f"{path} holds no line; expected {expected}.")


def _add(values: dict[str, dict[str, float]], question: str, passage: str, text: str, where: str, what: str) -> None:
    of_question, passage = values.setdefault(clean_id(question), {}), clean_id(passage)
    if passage in of_question:
        raise InputError(f"{where} has {quote(passage)} a second time for {quote(question)}: leave one out.")
    try:
        of_question[passage] = float(text)
    except ValueError:
        of_question[passage] = math.nan
    if not abs(of_question[passage]) < HIGHEST:
        raise InputError(f"{where}: {what} is {quote(text)}; expected a number that float32 holds.")

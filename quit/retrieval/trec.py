"""Files of TREC: runs and qrels, whose bad lines are named."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from quit.common.progress import advance
from quit.errors import InputError
from quit.sources.fields import quote
from quit.sources.files import check_file
from quit.text.words import counted

RUN = "a TREC run file: question Q0 passage rank score name, with spaces or tabs between"
QRELS = "a TREC qrels file: question 0 passage label, with spaces or tabs between"


def read_run(path: Path) -> tuple[str, dict[str, dict[str, float]]]:
    """Return the name of a run (its first line's) and question -> passage -> score, in the order of the file.

    Raises ``InputError`` that names the line for anything but six columns, a score that is no finite number, and a
    passage twice for one question.
    """
    tag, ranked = "", dict[str, dict[str, float]]()
    for number, (question, _, passage, _, score, name) in _lines(path, RUN, 6):
        _add(ranked, question, passage, score, f"{path}, line {number}", "the score, column 5,")
        tag = tag or name
    return tag, ranked


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
    for number, (question, _, passage, label) in _lines(path, QRELS, 4):
        where = f"{path}, line {number}"
        _add(labelled, question, passage, label, where, "the label, column 4,")
        if not labelled[question][passage].is_integer():
            raise InputError(f"{where}: the label, column 4, is {quote(label)}; expected a whole number.")
    return {query: {name: int(label) for name, label in labels.items()} for query, labels in labelled.items()}


def _lines(path: Path, expected: str, columns: int) -> Iterator[tuple[int, list[str]]]:
    """Yield number and columns of each line that is not blank."""
    check_file(path, expected)
    empty = True
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                fields = line.decode("utf-8-sig" if number == 1 else "utf-8").split()
            except UnicodeDecodeError:
                raise InputError(f"{path}, line {number} is no UTF-8 text; expected {expected}.") from None
            if not fields:
                continue
            if len(fields) != columns:
                text = f"{counted(len(fields), 'column')} ({quote(' '.join(fields))})"
                raise InputError(f"{path}, line {number} has {text}; expected {expected}.")
            yield number, fields
            empty = False
            advance("lines")
    if empty:
        raise InputError(f"{path} holds no line; expected {expected}.")


def _add(values: dict[str, dict[str, float]], question: str, passage: str, text: str, where: str, what: str) -> None:
    of_question = values.setdefault(question, {})
    if passage in of_question:
        raise InputError(f"{where} has {quote(passage)} a second time for {quote(question)}: leave one out.")
    try:
        of_question[passage] = float(text)
    except ValueError:
        of_question[passage] = math.nan
    if not math.isfinite(of_question[passage]):
        raise InputError(f"{where}: {what} is {quote(text)}; expected a number.")

"""How good is the judge that a profile chooses, against people?

The shipped instruments are measured by ``benchmarks/instruments.py``. Figures are plain numbers under the names that
``quit evaluate ... --json`` prints; shares are between 0 and 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from quit.errors import InputError, did_you_mean
from quit.evaluate.agreement import cohen_kappa
from quit.evaluate.significance import accuracy_interval
from quit.models.factory import Models
from quit.models.protocols import JudgeItem, Verdict
from quit.sources.lines import json_lines

Figures = dict[str, Any]


def judge(path: Path, models: Models) -> Figures:
    """Agreement of the profile's judge with human verdicts, and with the equivalence model.

    ``path``: JSONL of {question, answers, candidate, label}. Every pair is judged, exact matches too. Returns n,
    questions, readable (share of replies that are a verdict), yes (share of these that accept), accuracy, its
    interval (95%, over draws of questions), kappa, precision, recall and f1 over the readable ones, accuracy_of_all
    (an unread reply is an error), equivalence_accuracy on the readable ones, agreement of the two judges there, and
    unreadable: up to ten replies that are no verdict.
    """
    items, labels = zip(*judged_pairs(path), strict=True)
    questions = [item.question for item in items]
    verdicts = models.judge.verdicts(items)
    second = models.second_judge.verdicts(items) if models.second_judge else verdicts
    accepted, read = _said(verdicts)
    truth, (embedded, _) = np.array(labels), _said(second)
    figures: Figures = {"n": len(items), "questions": len(set(questions)), **_against(truth, verdicts, questions)}
    if read.any():
        figures |= {
            "accuracy_of_all": float(((accepted == truth) & read).mean()),
            "equivalence_accuracy": float((embedded == truth)[read].mean()),
            "agreement": float((accepted == embedded)[read].mean()),
        }
    unread = (verdict.raw for verdict in verdicts if verdict.correct is None)
    figures["unreadable"] = list(islice(dict.fromkeys(unread), 10))
    return figures


def _said(verdicts: Sequence[Verdict]) -> tuple[np.ndarray, np.ndarray]:
    """Return which answers are accepted, and which verdicts could be read: two bool arrays, shape (verdicts,)."""
    correct = [verdict.correct for verdict in verdicts]
    return np.array([*map(bool, correct)]), np.array([value is not None for value in correct])


def _against(truth: np.ndarray, verdicts: Sequence[Verdict], questions: Sequence[str]) -> Figures:
    accepted, read = _said(verdicts)
    if not read.any():
        return {"readable": 0.0}
    people, machine = truth[read], accepted[read]
    return {
        "readable": float(read.mean()),
        "yes": float(machine.mean()),
        "accuracy_interval": accuracy_interval(machine == people, np.array(questions)[read]),
        "kappa": cohen_kappa(Counter(zip(machine.tolist(), people.tolist(), strict=True))),
        **rates(machine, people),
    }


def labelled_rows(path: Path, needed: Iterable[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield number and object of each line; raises :class:`InputError` for one that lacks a key, and as
    :func:`quit.sources.lines.json_lines`."""
    for number, row in json_lines(path, f"JSON Lines with {', '.join(needed)}"):
        for key in needed:
            if key not in row:
                raise InputError(f"{path}, line {number}: {key!r} is missing.{did_you_mean(key, list(row))}")
        yield number, row


def judged_pairs(path: Path) -> Iterator[tuple[JudgeItem, bool]]:
    """Yield what is judged and people's verdict of each line of {question, answers, candidate, label}."""
    for number, row in labelled_rows(path, ("question", "answers", "candidate", "label")):
        answers = [row["answers"]] if isinstance(row["answers"], str) else row["answers"]
        texts = [*answers, row["candidate"]] if answers and isinstance(answers, list) else [None]
        question = row["question"]
        if not all(isinstance(text, str) for text in (*texts, question)):
            raise InputError(f"{path}, line {number}: answers must be texts (at least one), as question and candidate.")
        yield JudgeItem(question, question, tuple(answers), row["candidate"]), label_of(row["label"], path, number)


def label_of(value: Any, path: Path, number: int) -> bool:
    """Return a label of line ``number``. Raises :class:`InputError` for what is neither true nor false."""
    if isinstance(value, bool) or value in (0, 1):
        return bool(value)
    raise InputError(f"{path}, line {number}: the label must be true or false (or 1 or 0), found {value!r}.")


def rates(flagged: np.ndarray, truth: np.ndarray) -> Figures:
    """Return accuracy, precision, recall and f1 of ``flagged`` (bool, shape (n,)) where ``truth`` is what is right."""
    hits = int((flagged & truth).sum())
    precision = hits / flagged.sum() if flagged.sum() else 1.0
    recall = hits / truth.sum() if truth.sum() else 1.0
    return {
        "accuracy": float((flagged == truth).mean()),
        "precision": float(precision),
        "recall": float(recall),
        "f1": float(2 * precision * recall / (precision + recall)) if precision + recall else 0.0,
    }

"""How good are the models that a profile chooses? Its judge and its convergence against people or published labels.

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
import pyarrow as pa

from quit.common.json_lines import json_lines
from quit.errors import InputError, did_you_mean
from quit.evaluate.agreement import cohen_kappa
from quit.evaluate.association import spearman
from quit.evaluate.significance import accuracy_interval
from quit.models.convergence_scored import ScoredConvergence, convergence
from quit.models.factory import Models
from quit.models.protocols import HintSet, JudgeItem, Verdict
from quit.settings import Settings
from quit.sources import SourceRef, read_source
from quit.sources.records import RawQuestion
from quit.stages.questions.candidates import candidate_pool
from quit.text.normalize import normalize_answer

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


def convergence_agreement(source: SourceRef, models: Models, settings: Settings, limit: int | None = None) -> Figures:
    """How well convergence is recomputed from a source's scores, and how the model's ranks with the published one.

    Returns n (hints with a published convergence), scored (those with scores), exact_match (recomputed equals
    published), spearman (the model's against published, over all hints; None where one
    of them is the same for all) and model (its identity); of a language model
    also verdicts and unread, those of which no reply was a Yes or No. ``limit``: only the first so many questions. The
    shipped model was trained on published values, so its figure on those very files is not one of unseen data: its
    card has those.
    """
    questions = [
        question for question in questions_of(source) if any(hint.convergence is not None for hint in question.hints)
    ][:limit]
    published: list[float] = []
    exact: list[bool] = []
    collection = pa.table(
        {
            "question_id": [str(position) for position in range(len(questions))],
            **{name: [getattr(row, name) for row in questions] for name in ("question", "coarse", "fine")},
            "answers": [list(question.answers) for question in questions],
        }
    )
    rivals = []
    for question in questions:
        gold = {normalize_answer(answer) for answer in question.answers}
        rivals.append([candidate for candidate in question.candidates if normalize_answer(candidate) not in gold])
    bare = [row for row, scored_hints in enumerate(rivals) if not scored_hints]
    if bare:
        drawn = candidate_pool(collection, models, settings).draw(
            collection.take(pa.array(bare, pa.int64())).to_pylist()
        )
        for row, candidates in zip(bare, drawn, strict=True):
            rivals[row] = [candidate.candidate for candidate in candidates]
    items = []
    for question, others, (coarse, _) in zip(questions, rivals, types_of(questions, models), strict=True):
        scored_hints = [hint for hint in question.hints if hint.convergence is not None]
        counted = tuple(others[: settings.convergence.candidate_cap - 1])
        texts = tuple(hint.text for hint in scored_hints)
        items.append(HintSet(question.question, texts, question.answers[0], counted, coarse))
        published += [value for hint in scored_hints if (value := hint.convergence) is not None]
        for hint in scored_hints:
            if hint.scores:
                *wrong, last = hint.scores.values()
                exact.append(convergence(wrong, last, settings.convergence.candidate_cap) == hint.convergence)
    if not published:
        raise InputError(f"{source} publishes no convergence to compare with.")
    model = models.convergence
    values, unread = model.counted(items) if isinstance(model, ScoredConvergence) else (model.values(items), None)
    verdicts = sum(len(item.hints) * len({*item.distractors, item.gold}) for item in items)
    computed = [value for of_question in values for value in of_question]
    return {
        "n": len(published),
        "scored": len(exact),
        "exact_match": float(np.mean(exact)) if exact else None,
        "spearman": spearman(published, computed),
        "model": model.identity,
        **({} if unread is None else {"verdicts": verdicts, "unread": sum(map(sum, unread))}),
    }


def types_of(questions: Sequence[RawQuestion], models: Models) -> list[tuple[str, str]]:
    """Return each question's coarse and fine type: its source's own, else the classifier's."""
    untyped = [question.question for question in questions if not (question.coarse and question.fine)]
    guesses = iter(models.question_types.classify(untyped))
    types = []
    for question in questions:
        if question.coarse and question.fine:
            types.append((question.coarse, question.fine))
        else:
            guess = next(guesses)
            types.append((guess.coarse, guess.fine))
    return types


def questions_of(source: SourceRef) -> Iterator[RawQuestion]:
    """Yield the questions of a source, without what is rejected."""
    return (record.question for record in read_source(source) if record.question is not None)


def labelled_rows(path: Path, needed: Iterable[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield number and object of each line; raises :class:`InputError` for one that lacks a key, and for no line."""
    empty = True
    for number, row in json_lines(path):
        empty = False
        for key in needed:
            if key not in row:
                raise InputError(f"{path}, line {number}: {key!r} is missing.{did_you_mean(key, list(row))}")
        yield number, row
    if empty:
        raise InputError(f"{path} is empty.")


def judged_pairs(path: Path) -> Iterator[tuple[JudgeItem, bool]]:
    """Yield what is judged and people's verdict of each line of {question, answers, candidate, label}."""
    for number, row in labelled_rows(path, ("question", "answers", "candidate", "label")):
        answers = [row["answers"]] if isinstance(row["answers"], str) else row["answers"]
        texts = [*answers, row["candidate"]] if answers and isinstance(answers, list) else [None]
        if not all(isinstance(text, str) for text in texts):
            raise InputError(f"{path}, line {number}: answers must be texts (at least one), candidate a text.")
        question = str(row["question"])
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

"""How far retrieval complexity agrees with what is known of the questions."""

from __future__ import annotations

import hashlib
from itertools import product
from typing import NotRequired, TypedDict

import numpy as np

from quit.evaluate import association
from quit.evaluate.association import Association
from quit.qa.complexity.retrieval_complexity import Ratings, is_complex

FOLDS = 5
"""Parts of the questions: thresholds are chosen on the others and tried on each."""
_LEVELS = np.linspace(0.0, 1.0, 11)
"""The quantiles of a score that are tried as thresholds: its deciles."""
_ABOVE_ALL = 1.0 + 1e-9
"""A threshold that no score reaches."""


class DecisionFigures(TypedDict):
    """How a decision goes with known labels: ``f1`` of "complex", Matthews' correlation."""

    accuracy: float
    f1: float
    matthews: Association


class LabelFigures(TypedDict):
    """Decisions against the labels of ``items`` questions, of which ``positive`` are complex.

    ``complex``: RRCP; ``not_answerable``, ``not_complete``: one of its parts alone; ``chosen_thresholds``: RRCP with
    :func:`chosen_thresholds`; ``language_model``: what one says. ``auc``: what each score alone could do, the area
    under the ROC curve.
    """

    items: int
    positive: int
    complex: DecisionFigures
    not_answerable: DecisionFigures
    not_complete: DecisionFigures
    chosen_thresholds: DecisionFigures
    language_model: NotRequired[DecisionFigures]
    auc: NotRequired[dict[str, Association]]


class AnswerFigures(TypedDict):
    """A language model's own answers to ``items`` questions. ``accuracy``: the share that is correct, of ``all``,
    ``complex`` and ``not_complex`` questions; ``pearson``: the correlation of being correct with ``complex`` (which the
    paper reports) and with each score."""

    items: int
    accuracy: dict[str, float]
    pearson: dict[str, Association]


class Agreement(TypedDict, total=False):
    """How complexity goes with what is known of the questions; a part is left out where that is not known.

    ``known_complex``: their own labels, else more than one hop against one, as the paper labels MuSiQue; ``correct``:
    whether a language model knows the answer.
    """

    known_complex: LabelFigures
    correct: AnswerFigures


def agreement(ratings: Ratings) -> Agreement:
    """Return how complexity goes with known labels, each with a 95% bootstrap interval and a permutation p over groups.

    An interval is None where its statistic is not defined (all values or labels equal) in more than 2.5% of the
    resamples, as with few questions.
    """
    figures: Agreement = {}
    with_label = ratings.known("label")
    if len(np.unique(with_label["label"])) == 2:
        figures["known_complex"] = _two_classes(with_label)
    with_verdict = ratings.known("correct")
    if len(with_verdict.table):
        figures["correct"] = _correctness(with_verdict)
    return figures


def _two_classes(ratings: Ratings) -> LabelFigures:
    labels = ratings["label"]

    def figures_of(decision: np.ndarray) -> DecisionFigures:
        matthews = ratings.association(decision, "label", association.matthews)
        return {"accuracy": float((decision == labels).mean()), "f1": _f1(decision, labels), "matthews": matthews}

    figures: LabelFigures = {
        "items": len(labels),
        "positive": int(labels.sum()),
        "complex": figures_of(ratings["complex"]),
        "not_answerable": figures_of(~ratings["answerable"]),
        "not_complete": figures_of(~ratings["complete"]),
        "chosen_thresholds": figures_of(chosen_thresholds(ratings)),
    }
    if len(ratings.known("said_complex").table):
        figures["language_model"] = figures_of(ratings["said_complex"].astype(bool))
    above_half = ratings.associations("label", association.auc_minus_half)
    figures["auc"] = {name: _plus_half(row) for name, row in above_half.items()}
    return figures


def _plus_half(row: Association) -> Association:
    value, low, high = (None if bound is None else bound + 0.5 for bound in (row["value"], row["low"], row["high"]))
    return {**row, "value": value, "low": low, "high": high}


def _correctness(ratings: Ratings) -> AnswerFigures:
    decisions, correct = ratings["complex"], ratings["correct"]
    parts = {"all": np.ones(len(correct), dtype=bool), "complex": decisions, "not_complex": ~decisions}
    accuracy = {name: float(correct[part].mean()) for name, part in parts.items() if part.any()}
    pearson = {
        "complex": ratings.association(decisions, "correct", association.pearson),
        **ratings.associations("correct", association.pearson),
    }
    return {"items": len(correct), "accuracy": accuracy, "pearson": pearson}


def chosen_thresholds(ratings: Ratings) -> np.ndarray:
    """Return the decision "complex" on each fold with the thresholds that do best on the others (Matthews'
    correlation with ``label``), bool.

    Thresholds are tried at the deciles of each score; a group stays in one fold, drawn by a hash of its name.
    """
    seed = ratings.settings.seed
    keys = [hashlib.blake2b(f"{seed}\0{group}".encode(), digest_size=8).digest() for group in ratings["group"]]
    fold = np.array([int.from_bytes(key, "big") % FOLDS for key in keys])
    decisions = np.zeros(len(fold), dtype=bool)
    for number in np.unique(fold):
        others = ratings.where(fold != number)
        if not len(others.table):
            continue
        correlations: dict[tuple[float, float], float] = {}
        for pair in product(_candidates(others["answerability"]), _candidates(others["completeness"])):
            correlation = association.matthews(is_complex(others, *pair), others["label"])
            if correlation is not None:
                correlations[pair] = correlation
        thresholds = max(correlations, key=correlations.__getitem__, default=(1.0, 1.0))
        held_out = fold == number
        decisions[held_out] = is_complex(ratings.where(held_out), *thresholds)
    return decisions


def _candidates(scores: np.ndarray) -> np.ndarray:
    return np.append(np.unique(np.quantile(scores, _LEVELS)), _ABOVE_ALL)


def _f1(decisions: np.ndarray, labels: np.ndarray) -> float:
    both = float((decisions & labels).sum())
    return 2 * both / max(1.0, float(decisions.sum() + labels.sum()))

"""How far retrieval complexity agrees with what is known of the questions."""

from __future__ import annotations

import hashlib
from itertools import product
from typing import Any

import numpy as np

from quit.evaluate import association
from quit.qa.complexity.retrieval_complexity import Ratings, is_complex

FOLDS = 5
"""Parts of the questions: thresholds are chosen on the others and tried on each."""
_LEVELS = np.linspace(0.0, 1.0, 11)
"""The quantiles of a score that are tried as thresholds: its deciles."""
_ABOVE_ALL = 1.0 + 1e-9
"""A threshold that no score reaches."""


def agreement(ratings: Ratings) -> dict[str, Any]:
    """Return how complexity goes with known labels, each with a 95% bootstrap interval and a permutation p over groups.

    ``known_complex``: by a question's own label, else more than one hop against one, as the paper labels MuSiQue:
    accuracy, F1 of "complex", Matthews' correlation, the same with answerability alone, with thresholds chosen on the
    other folds, and what each score alone could do (area under the ROC curve).
    ``correct``: share of a language model's own answers that are correct, of complex and other questions, and Pearson's
    correlation of that with complex and with each score (the paper reports it for complex).
    A part is left out where its labels are not known. An interval is None where its statistic is not defined (all
    values or labels equal) in more than 2.5% of the resamples, as with few questions.
    """
    figures: dict[str, Any] = {}
    with_label = ratings.known("label")
    if len(np.unique(with_label["label"])) == 2:
        figures["known_complex"] = _two_classes(with_label)
    with_verdict = ratings.known("correct")
    if len(with_verdict.table):
        figures["correct"] = _correctness(with_verdict)
    return figures


def _two_classes(ratings: Ratings) -> dict[str, Any]:
    labels = ratings["label"]
    decisions = {
        "complex": ratings["complex"],
        "not_answerable": ~ratings["answerable"],
        "not_complete": ~ratings["complete"],
        "chosen_thresholds": chosen_thresholds(ratings),
    }
    if len(ratings.known("said_complex").table):
        decisions["language_model"] = ratings["said_complex"].astype(bool)
    figures: dict[str, Any] = {"items": len(labels), "positive": int(labels.sum())}
    for name, decision in decisions.items():
        figures[name] = {
            "accuracy": float((decision == labels).mean()),
            "f1": _f1(decision, labels),
            "matthews": ratings.association(decision, "label", association.matthews),
        }
    figures["auc"] = ratings.associations("label", association.auc_minus_half)
    for row in figures["auc"].values():
        row |= {key: row[key] + 0.5 for key in ("value", "low", "high") if row[key] is not None}
    return figures


def _correctness(ratings: Ratings) -> dict[str, Any]:
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

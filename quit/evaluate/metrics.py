"""The one set of metrics: of rankings (Hit, Recall, MRR, nDCG) and of answers (EM, F1, cover-EM).

Rankings are sequences of relevance labels in rank order, so a metric never sees an id. nDCG's gain is the label, as in
trec_eval and ir_measures; ``nDCG(exp)``, of the QUIT paper's scripts, has the gain 2^label - 1. The discount of both is
log2(rank + 1). **Questions without a relevant passage** are treated alike by every metric, by one of two policies:
``zero`` (they count, with the value 0) or ``skip`` (they are left out of every mean). ``zero`` is the default: it keeps
one denominator for all metrics, systems and corpora, also where only retrieved passages have labels and "no relevant
passage" is the system's own doing.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from quit.errors import InputError, SettingsError, check_known, did_you_mean
from quit.text.normalize import squad_normalised

POLICIES = {"zero": "counts as 0", "skip": "left out"}
RANKING = ("Hit", "Recall", "MRR", "nDCG", "nDCG(exp)")
READING = ("EM", "F1", "cover-EM")
_MEASURE = re.compile(r"(?P<name>[A-Za-z]+(\(exp\))?)(\(rel=(?P<least>\d+)\))?@(?P<depth>\d+)")


@dataclass(frozen=True, slots=True)
class Measure:
    """A ranking metric at a depth. ``least``: the lowest label that counts as relevant (nDCG uses every label's gain).

    >>> str(Measure.parse("Hit(rel=2)@10")), Measure.parse("nDCG@10").least
    ('Hit(rel=2)@10', 1)
    """

    name: str
    depth: int
    least: int = 1

    @classmethod
    def parse(cls, text: str) -> Measure:
        """Read ``Hit@1``, ``Recall@50``, ``MRR@100``, ``nDCG@10``, ``nDCG(exp)@10``, ``Hit(rel=2)@1``.

        Raises ``SettingsError`` for anything else.
        """
        parts = _MEASURE.fullmatch(text.strip())
        name = parts["name"] if parts else text.partition("@")[0]
        if parts is None or name not in RANKING or not int(parts["depth"]) or parts["least"] == "0":
            raise SettingsError(
                f"{text!r} is not a ranking metric. Write NAME@DEPTH or NAME(rel=LABEL)@DEPTH, such as nDCG@10."
                f"{did_you_mean(name, RANKING)}"
            )
        return cls(name, int(parts["depth"]), int(parts["least"] or 1))

    def __str__(self) -> str:
        return f"{self.name}(rel={self.least})@{self.depth}" if self.least != 1 else f"{self.name}@{self.depth}"

    @property
    def needs_all(self) -> bool:
        """Whether the labels of passages that were not retrieved matter."""
        return self.name == "Recall" or self.name.startswith("nDCG")

    def value(self, ranked: Sequence[int] | np.ndarray, judged: Sequence[int] | np.ndarray) -> float:
        """Return one question's metric, 0 to 1, from labels in rank order and those of all judged passages."""
        if self.name == "Hit":
            return hit(ranked, self.depth, self.least)
        if self.name == "MRR":
            return reciprocal_rank(ranked, self.depth, self.least)
        if self.name == "Recall":
            return recall(ranked, judged, self.depth, self.least)
        return ndcg(ranked, judged, self.depth, exponential=self.name == "nDCG(exp)")


def hit(ranked: Sequence[int] | np.ndarray, depth: int, least: int = 1) -> float:
    """Return 1 if one of the first ``depth`` labels is relevant, else 0 (also for an empty ranking)."""
    return float(bool((np.asarray(ranked)[:depth] >= least).any()))


def reciprocal_rank(ranked: Sequence[int] | np.ndarray, depth: int, least: int = 1) -> float:
    """Return 1 / rank of the first relevant passage among the first ``depth``, 0 where there is none."""
    relevant = np.flatnonzero(np.asarray(ranked)[:depth] >= least)
    return 1.0 / (int(relevant[0]) + 1) if len(relevant) else 0.0


def recall(ranked: Sequence[int] | np.ndarray, judged: Sequence[int] | np.ndarray, depth: int, least: int = 1) -> float:
    """Return the share of the relevant passages that are among the first ``depth``; 0 where there is none."""
    relevant = int((np.asarray(judged) >= least).sum())
    return float((np.asarray(ranked)[:depth] >= least).sum()) / relevant if relevant else 0.0


def ndcg(
    ranked: Sequence[int] | np.ndarray, judged: Sequence[int] | np.ndarray, depth: int, *, exponential: bool = False
) -> float:
    """Return DCG over the ideal DCG of the same depth; 0 where no passage has a gain. See :func:`dcg`."""
    highest = float(np.max(judged, initial=0)) if exponential else 0.0
    ideal = dcg(np.sort(np.asarray(judged))[::-1], depth, exponential=exponential, highest=highest)
    return dcg(ranked, depth, exponential=exponential, highest=highest) / ideal if ideal else 0.0


def dcg(ranked: Sequence[int] | np.ndarray, depth: int, *, exponential: bool = False, highest: float = 0.0) -> float:
    """Return the sum over ranks r of gain / log2(r + 1). Gain: the label (0 for a negative one, as in trec_eval), or
    (2^label - 1) / 2^highest, which does not overflow where no label is higher."""
    gains = np.maximum(np.asarray(ranked, dtype=np.float64)[:depth], 0.0)
    if exponential:
        gains = np.exp2(gains - highest) - np.exp2(-highest)
    return math.fsum(gains / [math.log2(rank) for rank in range(2, len(gains) + 2)])


def run_values(
    run: Mapping[str, Sequence[str]], qrels: Mapping[str, Mapping[str, int]], measure: Measure
) -> dict[str, float | None]:
    """Return question -> value for every question of ``qrels``: None where no passage is relevant, 0 where nothing was
    retrieved.

    ``run``: question -> passage ids, best first; an id without a label has label 0. Raises ``InputError`` for a
    passage twice in one ranking.
    """
    values: dict[str, float | None] = {}
    for question, labels in qrels.items():
        ranking = run.get(question, ())
        if len(set(ranking)) < len(ranking):
            raise InputError(f"The ranking of question {question!r} names a passage twice.")
        relevant = max(labels.values(), default=0) >= measure.least
        ranked = [labels.get(name, 0) for name in ranking]
        values[question] = measure.value(ranked, [*labels.values()]) if relevant else None
    return values


def mean(values: Sequence[float | None] | np.ndarray, policy: str = "zero") -> float:
    """Return the mean under a policy; None (or NaN) is a question without a relevant passage. No question left: 0.

    Raises ``SettingsError`` for an unknown policy.
    """
    scores = under(values, policy)
    return float(np.mean(scores)) if len(scores) else 0.0


def under(values: Sequence[float | None] | np.ndarray, policy: str) -> np.ndarray:
    """Return what a policy counts: float64, questions without a relevant passage as 0 (``zero``) or left out
    (``skip``).

    Raises ``SettingsError`` for another policy.
    """
    check_known(policy, POLICIES, "policy")
    array = np.asarray(values, dtype=np.float64)
    return np.nan_to_num(array, nan=0.0) if policy == "zero" else array[~np.isnan(array)]


def exact_match(prediction: str, golds: Sequence[str]) -> float:
    """Return 1 if the normalised prediction equals a normalised gold answer, else 0; a blank one equals nothing."""
    key = squad_normalised(prediction)
    return float(bool(key) and any(key == squad_normalised(gold) for gold in golds))


def f1(prediction: str, golds: Sequence[str]) -> float:
    """Return the highest F1 of normalised tokens over the gold answers (SQuAD); 0 where either side is blank."""
    predicted = squad_normalised(prediction).split()
    best = 0.0
    for gold in golds:
        gold_tokens = squad_normalised(gold).split()
        common = sum((Counter(predicted) & Counter(gold_tokens)).values())
        if common:
            best = max(best, 2.0 * common / (len(predicted) + len(gold_tokens)))
    return best


def cover_em(prediction: str, golds: Sequence[str], substring: bool = False) -> float:
    """Return 1 if a normalised gold answer is in the normalised prediction, else 0: as a run of whole tokens, or
    anywhere (``substring``).

    >>> cover_em("It is Lima, I think", ["Lima"]), cover_em("Limassol", ["Lima"]), cover_em("Limassol", ["Lima"], True)
    (1.0, 0.0, 1.0)
    """
    edge = "" if substring else " "
    text = f"{edge}{squad_normalised(prediction)}{edge}"
    return float(any(f"{edge}{key}{edge}" in text for gold in golds if (key := squad_normalised(gold))))


def answer_value(name: str, prediction: str, golds: Sequence[str]) -> float:
    """Return EM, F1 or cover-EM of one prediction, 0 to 1. Raises ``SettingsError`` for another name."""
    measures = {"EM": exact_match, "F1": f1, "cover-EM": cover_em}
    check_known(name, measures, "reading metric")
    return measures[name](prediction, golds)

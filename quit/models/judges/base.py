"""Rulings that need no judge (exact matches, NO ANSWER), and the judge by answer equivalence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quit.models.depth import pair_note
from quit.models.protocols import NO_ANSWER, Equivalence, Judge, JudgeItem, Pair, Verdict
from quit.text.normalize import normalize_answer


@dataclass(frozen=True, slots=True)
class Ruling:
    """A verdict and its basis: ``exact``, ``no_answer`` or ``model``."""

    verdict: Verdict
    basis: str


def rule(items: Sequence[JudgeItem], judge: Judge, sample: int = 0) -> list[Ruling]:
    """Return one ruling an item; the judge sees only answers that equal no gold answer and are not NO ANSWER."""
    rulings: list[Ruling | None] = []
    open_items: list[JudgeItem] = []
    for item in items:
        key = normalize_answer(item.candidate)
        if not key or item.candidate == NO_ANSWER:
            rulings.append(Ruling(Verdict(False, None, ""), "no_answer"))
        elif key in {normalize_answer(gold) for gold in item.gold_answers}:
            rulings.append(Ruling(Verdict(True, None, ""), "exact"))
        else:
            rulings.append(None)
            open_items.append(item)
    verdicts = iter(judge.verdicts(open_items, sample) if open_items else ())
    return [Ruling(next(verdicts), "model") if ruling is None else ruling for ruling in rulings]


class EquivalenceJudge:
    """Correct if equivalent to any gold answer with at least ``threshold`` probability."""

    def __init__(self, name: str, equivalence: Equivalence, threshold: float) -> None:
        self.name = name
        self._equivalence = equivalence
        self._threshold = threshold
        self._bem = equivalence.identity.startswith("bem")
        self.identity = f"equivalence-judge/{threshold:g}+{equivalence.identity}"

    def verdicts(self, items: Sequence[JudgeItem], sample: int = 0) -> list[Verdict]:
        """Return one verdict per item: the highest probability over its gold answers. ``sample`` changes nothing."""
        pairs = [Pair(item.question, gold, item.candidate) for item in items for gold in item.gold_answers]
        probabilities = iter(self._equivalence.probability(pairs).tolist() if pairs else ())
        verdicts = []
        for item in items:
            best = max((next(probabilities) for _ in item.gold_answers), default=0.0)
            note = pair_note(item.question, item.gold_answers, item.candidate, self._bem)
            verdicts.append(Verdict(best >= self._threshold, best, f"p={best:.4f}", note))
        return verdicts

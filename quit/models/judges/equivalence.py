"""The equivalence model as judge: in place of GPT-Eval where there is no LLM."""

from __future__ import annotations

from collections.abc import Sequence

from quit.models.protocols import Equivalence, JudgeItem, Pair, Verdict


class EquivalenceJudge:
    """Correct if equivalent to any gold answer with at least ``threshold`` probability."""

    def __init__(self, name: str, equivalence: Equivalence, threshold: float = 0.5) -> None:
        self.name = name
        self._equivalence = equivalence
        self._threshold = threshold
        self.identity = f"equivalence-judge/{threshold:g}+{equivalence.identity}"

    def verdicts(self, items: Sequence[JudgeItem], sample: int = 0) -> list[Verdict]:
        """Return one verdict an item with the highest probability over its gold answers; ``sample`` changes nothing."""
        pairs = [Pair(item.question, gold, item.candidate) for item in items for gold in item.gold_answers]
        probabilities = iter(self._equivalence.probability(pairs).tolist() if pairs else ())
        verdicts = []
        for item in items:
            best = max((next(probabilities) for _ in item.gold_answers), default=0.0)
            verdicts.append(Verdict(best >= self._threshold, best, f"p={best:.4f}"))
        return verdicts

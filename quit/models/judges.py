"""Judges: is a generated answer correct? Exact matches and NO ANSWER never reach a model (:func:`rule`).

The judge is answer equivalence, or GPT-Eval: a language model says Yes or No (paper, figure 3; Kamalloo et al. 2023).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quit.contracts.columns import Basis
from quit.models.generation.base import ChatRequest, Completing
from quit.models.prompting import PromptTemplate
from quit.models.protocols import NO_ANSWER, Equivalence, Judge, JudgeItem, Pair, Verdict
from quit.models.yes_no import ATTEMPTS, CHOICES, REPLY_TOKENS, VERSION, read_verdicts
from quit.text.answers import answer_key

JUDGE_FIELDS = frozenset({"question", "answer", "candidate"})


@dataclass(frozen=True, slots=True)
class Ruling:
    """A verdict and its basis: ``exact``, ``no_answer`` or ``model``."""

    verdict: Verdict
    basis: Basis


def rule(items: Sequence[JudgeItem], judge: Judge, sample: int = 0) -> list[Ruling]:
    """Return one ruling per item; the judge sees only answers that equal no gold answer and are not NO ANSWER."""
    bases = [basis_of(item) for item in items]
    open_items = [item for item, basis in zip(items, bases, strict=True) if basis == "model"]
    verdicts = iter(judge.verdicts(open_items, sample) if open_items else ())
    return [
        Ruling(next(verdicts) if basis == "model" else Verdict(basis == "exact", None, ""), basis) for basis in bases
    ]


def basis_of(item: JudgeItem) -> Basis:
    """Return what decides about an item: ``exact`` (it equals a gold answer), ``no_answer``, or ``model``."""
    key = answer_key(item.candidate)
    if not key or item.candidate == NO_ANSWER:
        return "no_answer"
    return "exact" if key in {answer_key(gold) for gold in item.gold_answers} else "model"


class EquivalenceJudge:
    """Correct if equivalent to any gold answer with at least ``threshold`` probability."""

    def __init__(self, name: str, equivalence: Equivalence, threshold: float) -> None:
        self.name = name
        self._equivalence = equivalence
        self._threshold = threshold
        self.identity = f"equivalence-judge/{threshold:g}+{equivalence.identity}"

    def verdicts(self, items: Sequence[JudgeItem], sample: int = 0) -> list[Verdict]:
        """Return one verdict per item: the highest probability over its gold answers. ``sample`` changes nothing."""
        pairs = [Pair(item.question, gold, item.candidate) for item in items for gold in item.gold_answers]
        probabilities = iter(self._equivalence.probability(pairs).tolist() if pairs else ())
        verdicts = []
        for item in items:
            best = max((next(probabilities) for _ in item.gold_answers), default=0.0)
            note = self._equivalence.note(item.question, item.gold_answers, item.candidate)
            verdicts.append(Verdict(best >= self._threshold, best, f"p={best:.4f}", note))
        return verdicts


@dataclass(eq=False)
class GptEvalJudge:
    """Asks a language model Yes or No at temperature 0.

    A reply that is neither is asked for again, up to ``attempts`` times in all; then ``correct`` is None, which
    nothing later takes for a no. One prompt has all gold answers, separated by semicolons.
    """

    name: str
    generator: Completing
    prompt: PromptTemplate
    max_tokens: int = REPLY_TOKENS
    attempts: int = ATTEMPTS
    constrained: bool = False

    def __post_init__(self) -> None:
        kind = "constrained" if self.constrained else "free"
        limits = f"{self.max_tokens} tokens, {self.attempts} attempts, {kind}"
        self.identity = f"gpt-eval-{VERSION}/{self.generator.identity}|{self.prompt.identity}|{limits}"

    def verdicts(self, items: Sequence[JudgeItem], sample: int = 0) -> list[Verdict]:
        """Return one verdict per item, in order; ``raw`` is the last reply."""
        samples = range(sample * self.attempts, (sample + 1) * self.attempts)
        replies = read_verdicts(self.generator, [*map(self.request, items)], samples)
        return [Verdict(reply.correct, None, reply.raw) for reply in replies]

    def request(self, item: JudgeItem) -> ChatRequest:
        """Return what the model is asked about an answer."""
        fields = {
            "question": item.question,
            "answer": "; ".join(dict.fromkeys(item.gold_answers)),
            "candidate": item.candidate,
        }
        choices = CHOICES if self.constrained else ()
        return ChatRequest(self.prompt, fields, self.max_tokens, choices=choices, group=item.question_id)

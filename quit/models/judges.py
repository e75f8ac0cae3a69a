"""Judges: is a generated answer correct? Exact matches and NO ANSWER never reach a model (:func:`rule`).

The judge is answer equivalence, or GPT-Eval: a language model says Yes or No (paper, figure 3; Kamalloo et al. 2023).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace

from quit.models.generation.base import ChatRequest, Completing
from quit.models.limits import pair_note
from quit.models.prompting import PromptTemplate
from quit.models.protocols import NO_ANSWER, Equivalence, Judge, JudgeItem, Pair, Verdict
from quit.text.answers import answer_key

JUDGE_FIELDS = frozenset({"question", "answer", "candidate"})
CHOICES = ("Yes", "No")
VERSION = 5
"""Of how replies are read as verdicts (:func:`parse_verdict`), a part of identities."""

_OF_THE_ANSWER = "".join(rf"(?<!\b{word} )" for word in ("gold", "golden", "reference", "expected", "true"))
_LABEL = rf"{_OF_THE_ANSWER}\b(?<!not )(?:answer|verdict|judge?ment|decision|conclusion|correct|boxed)\b"
_ON = "as|because|but|he|i|it|its|she|since|that|the|these|they|this|you"
_GOES_ON = rf"(?!-\w|\. *\d)(?= *(?:[^\w\s]|_|\s*\Z|\s*\n| (?:{_ON})\b))"
"""After a verdict; another word makes a phrase or a title of it (*no idea*, *No Country for Old Men*, *No. 5*)."""
_VERDICT = re.compile(rf"(?:\A|{_LABEL}(?:[^.?\n]{{0,40}}(?:\bis\b|[:={{>])|\s*\n))[\W_]*(yes|no)\b{_GOES_ON}")
_ALONE = re.compile(r"\byes\b|\bno\b(?! +\w)")  # "there is no doubt" is no second verdict
_EITHER = re.compile(r"\byes\b\W*(?:\b(?:or|and)\b|[/|&])\W*\bno\b")


@dataclass(frozen=True, slots=True)
class Ruling:
    """A verdict and its basis: ``exact``, ``no_answer`` or ``model``."""

    verdict: Verdict
    basis: str


def rule(items: Sequence[JudgeItem], judge: Judge, sample: int = 0) -> list[Ruling]:
    """Return one ruling an item; the judge sees only answers that equal no gold answer and are not NO ANSWER."""
    bases = [basis_of(item) for item in items]
    open_items = [item for item, basis in zip(items, bases, strict=True) if basis == "model"]
    verdicts = iter(judge.verdicts(open_items, sample) if open_items else ())
    return [
        Ruling(next(verdicts) if basis == "model" else Verdict(basis == "exact", None, ""), basis) for basis in bases
    ]


def basis_of(item: JudgeItem) -> str:
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
        self._is_bem = equivalence.identity.startswith("bem")
        self.identity = f"equivalence-judge/{threshold:g}+{equivalence.identity}"

    def verdicts(self, items: Sequence[JudgeItem], sample: int = 0) -> list[Verdict]:
        """Return one verdict per item: the highest probability over its gold answers. ``sample`` changes nothing."""
        pairs = [Pair(item.question, gold, item.candidate) for item in items for gold in item.gold_answers]
        probabilities = iter(self._equivalence.probability(pairs).tolist() if pairs else ())
        verdicts = []
        for item in items:
            best = max((next(probabilities) for _ in item.gold_answers), default=0.0)
            note = pair_note(item.question, item.gold_answers, item.candidate, self._is_bem)
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
    max_tokens: int = 8
    attempts: int = 3
    constrained: bool = False

    def __post_init__(self) -> None:
        kind = "constrained" if self.constrained else "free"
        limits = f"{self.max_tokens} tokens, {self.attempts} attempts, {kind}"
        self.identity = f"gpt-eval-{VERSION}/{self.generator.identity}|{self.prompt.identity}|{limits}"

    def verdicts(self, items: Sequence[JudgeItem], sample: int = 0) -> list[Verdict]:
        """Return one verdict per item, in order; ``raw`` is the last reply."""
        samples = range(sample * self.attempts, (sample + 1) * self.attempts)
        replies = read_verdicts(self.generator, [*map(self.request, items)], samples)
        return [Verdict(correct, None, text) for correct, text in replies]

    def request(self, item: JudgeItem) -> ChatRequest:
        """Return what the model is asked about an answer."""
        fields = {
            "question": item.question,
            "answer": "; ".join(dict.fromkeys(item.gold_answers)),
            "candidate": item.candidate,
        }
        choices = CHOICES if self.constrained else ()
        return ChatRequest(self.prompt, fields, self.max_tokens, choices=choices, group=item.question_id)


def parse_verdict(reply: str) -> bool | None:
    """Return True for a reply that begins with Yes or says that its answer is Yes, False for No, None for any other.

    A reply that also has the other word on its own (``Yes or No?``) is no verdict.
    """
    text = unicodedata.normalize("NFKC", reply).casefold()
    match = _VERDICT.search(text)
    if match is None or len(set(_ALONE.findall(text)) | {match[1]}) > 1 or _EITHER.search(text):
        return None
    return match[1] == "yes"


def read_verdicts(
    generator: Completing, requests: Sequence[ChatRequest], samples: Sequence[int]
) -> list[tuple[bool | None, str]]:
    """Return the verdict and the last reply of each request; None where no reply was a readable Yes or No.

    Requests without a verdict are made again, once per sample.
    """
    replies: list[tuple[bool | None, str]] = [(None, "")] * len(requests)
    for sample in samples:
        unread = [row for row, (verdict, _) in enumerate(replies) if verdict is None]
        if not unread:
            break
        again = [replace(requests[row], sample=sample) for row in unread]
        for row, reply in zip(unread, generator.complete(again), strict=True):
            replies[row] = parse_verdict(reply.text), reply.text
    return replies

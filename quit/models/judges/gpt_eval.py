"""GPT-Eval: a language model says whether a generated answer is correct (paper, figure 3; Kamalloo et al. 2023)."""

from __future__ import annotations

from collections.abc import Sequence

from quit.models.generation import CachedGenerator, ChatRequest
from quit.models.prompting import PromptTemplate
from quit.models.protocols import JudgeItem, Verdict

JUDGE_FIELDS = frozenset({"question", "answer", "candidate"})
CHOICES = ("Yes", "No")
VERSION = 1


def gpt_eval_identity(generator: str, prompt: PromptTemplate, max_tokens: int, attempts: int, constrained: bool) -> str:
    """Return what this judge's verdicts depend on."""
    kind = "constrained" if constrained else "free"
    return f"gpt-eval-{VERSION}/{generator}|{prompt.identity}|{max_tokens} tokens, {attempts} attempts, {kind}"


class GptEvalJudge:
    """Asks a language model Yes or No at temperature 0.

    A reply that is neither is asked for again, up to ``attempts`` times in all; then ``correct`` is None, which
    nothing later takes for a no. Several gold answers stand in one prompt, separated by semicolons.
    """

    def __init__(
        self,
        name: str,
        generator: CachedGenerator,
        prompt: PromptTemplate,
        *,
        max_tokens: int = 8,
        attempts: int = 3,
        constrained: bool = False,
    ) -> None:
        self.name = name
        self.identity = gpt_eval_identity(generator.identity, prompt, max_tokens, attempts, constrained)
        self._generator = generator
        self._prompt = prompt
        self._max_tokens = max_tokens
        self._attempts = attempts
        self._choices = CHOICES if constrained else ()

    def verdicts(self, items: Sequence[JudgeItem], sample: int = 0) -> list[Verdict]:
        """Return one verdict an item, in order; ``raw`` is the last reply."""
        raw = [""] * len(items)
        correct: list[bool | None] = [None] * len(items)
        for attempt in range(self._attempts):
            unread = [row for row, verdict in enumerate(correct) if verdict is None]
            if not unread:
                break
            number = sample * self._attempts + attempt
            replies = self._generator.complete([self._request(items[row], number) for row in unread])
            for row, reply in zip(unread, replies, strict=True):
                raw[row], correct[row] = reply.text, parse_verdict(reply.text)
        return [Verdict(verdict, None, text) for verdict, text in zip(correct, raw, strict=True)]

    def _request(self, item: JudgeItem, sample: int) -> ChatRequest:
        fields = {
            "question": item.question,
            "answer": "; ".join(dict.fromkeys(item.gold_answers)),
            "candidate": item.candidate,
        }
        return ChatRequest(
            self._prompt, fields, self._max_tokens, sample=sample, choices=self._choices, group=item.question_id
        )


def parse_verdict(reply: str) -> bool | None:
    """Return True for a reply that starts with yes, False for one that starts with no, None for any other."""
    words = reply.strip().lstrip("\"'`*“‘( ").casefold()
    for word, verdict in (("yes", True), ("no", False)):
        if words.startswith(word) and not words[len(word) : len(word) + 1].isalpha():
            return verdict
    return None

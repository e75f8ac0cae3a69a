"""GPT-Eval: a language model says whether a generated answer is correct (paper, figure 3; Kamalloo et al. 2023)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

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
    nothing later takes for a no. One prompt has all gold answers, separated by semicolons.
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
        samples = range(sample * self._attempts, (sample + 1) * self._attempts)
        replies = read_verdicts(
            self._generator, lambda row, number: self._request(items[row], number), len(items), samples
        )
        return [Verdict(correct, None, text) for correct, text in replies]

    def _request(self, item: JudgeItem, sample: int) -> ChatRequest:
        fields = {
            "question": item.question,
            "answer": "; ".join(dict.fromkeys(item.gold_answers)),
            "candidate": item.candidate,
        }
        return ChatRequest(
            self._prompt, fields, self._max_tokens, sample=sample, choices=self._choices, group=item.question_id
        )


def read_verdicts(
    generator: CachedGenerator,
    request: Callable[[int, int], ChatRequest],
    rows: int,
    samples: Sequence[int],
    parse: Callable[[str], bool | None] | None = None,
) -> list[tuple[bool | None, str]]:
    """Return the verdict and the last reply of each row; None where no reply was a readable Yes or No.

    ``request``: (row, sample) -> what to ask. Rows without a verdict are asked for again, once a sample. ``parse``:
    how a reply is read, :func:`parse_verdict` if not given.
    """
    parse = parse or parse_verdict
    replies: list[tuple[bool | None, str]] = [(None, "")] * rows
    for sample in samples:
        unread = [row for row, (verdict, _) in enumerate(replies) if verdict is None]
        if not unread:
            break
        for row, reply in zip(unread, generator.complete([request(row, sample) for row in unread]), strict=True):
            replies[row] = parse(reply.text), reply.text
    return replies


def parse_verdict(reply: str) -> bool | None:
    """Return True for a reply that starts with yes, False for one that starts with no, None for any other."""
    words = reply.strip().lstrip("\"'`*“‘( ").casefold()
    for word, verdict in (("yes", True), ("no", False)):
        if words.startswith(word) and not words[len(word) : len(word) + 1].isalpha():
            return verdict
    return None

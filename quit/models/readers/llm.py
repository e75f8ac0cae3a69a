"""Language models as readers: the paper's few-shot prompt (figure 8), greedy, 32 new tokens, cleaned replies."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from quit.models.generation.base import ChatRequest, Completing, Completion, before_stop
from quit.models.prompting import PromptTemplate
from quit.models.protocols import Prompt, Reply
from quit.models.readers import cleaning

READER_FIELDS = frozenset({"context", "question"})
PROBE_FIELDS = frozenset({"question"})


@dataclass(eq=False)
class LLMReader:
    """A language model that answers from a passage, or from the question alone where a prompt has no hints.

    ``stop``: strings before the first of which a reply ends. ``sentences``: what becomes of sentences
    (:func:`quit.models.readers.cleaning.clean_answer`).
    """

    name: str
    generator: Completing
    prompt: PromptTemplate
    probe: PromptTemplate
    max_tokens: int = 32
    temperature: float = 0.0
    probe_temperature: float = 0.0
    stop: tuple[str, ...] = ()
    sentences: cleaning.Sentences = "drop"

    def __post_init__(self) -> None:
        self.identity = (
            f"{self.generator.identity}|{self.prompt.identity}+{self.probe.identity}|{self.max_tokens} tokens, "
            f"temperature {self.temperature:g}/{self.probe_temperature:g}"
            f"{f', stop {json.dumps(self.stop)}' if self.stop else ''}"
            f"|{cleaning.cleaning_identity(self.sentences)}"
        )

    def answer(self, prompts: Sequence[Prompt], sample: int = 0) -> list[Reply]:
        """Return one reply per prompt, in order; they are sent question by question, depth first."""
        order = depth_first(prompts)
        completions = self.generator.complete([self.request(prompts[row], sample) for row in order])
        replies = {row: self._reply(completion) for row, completion in zip(order, completions, strict=True)}
        return [replies[row] for row in range(len(prompts))]

    def _reply(self, completion: Completion) -> Reply:
        text = before_stop(completion.text, self.stop)  # some servers do not know stop strings
        raw, finish_reason = cleaning.without_controls(text), completion.finish_reason
        if text != completion.text:
            finish_reason = "stop"
        return Reply(raw, cleaning.clean_answer(raw, finish_reason, self.sentences, self.stop), finish_reason)

    def request(self, prompt: Prompt, sample: int = 0) -> ChatRequest:
        """Return what the model is asked for a prompt."""
        if prompt.hints:
            fields = {"context": " ".join(prompt.hints), "question": prompt.question}
            template, temperature = self.prompt, self.temperature
        else:
            fields = {"question": prompt.question}
            template, temperature = self.probe, self.probe_temperature
        return ChatRequest(
            template, fields, self.max_tokens, temperature, sample, group=prompt.question_id, stop=self.stop
        )


def depth_first(prompts: Sequence[Prompt]) -> list[int]:
    """Return the positions of the prompts in the order a prefix cache rewards.

    Questions in order of appearance; within one, the passages in preorder of the trie of their hints, so that each
    comes right after the subtree of its elder sibling, and all but its last hint was just computed. ``passages``
    already has this order; it must not depend on that.
    """
    questions: dict[str, int] = {}
    hints: dict[tuple[str, str], int] = {}
    keys = []
    for prompt in prompts:
        group = questions.setdefault(prompt.question_id, len(questions))
        path = tuple(hints.setdefault((prompt.question_id, hint), len(hints)) for hint in prompt.hints)
        keys.append((group, path))
    return sorted(range(len(prompts)), key=keys.__getitem__)

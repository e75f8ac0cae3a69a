"""A model that counts what it is asked, for tests of the cache."""

from collections.abc import Callable, Sequence
from typing import Any

from quit.errors import ServerError
from quit.models.generation import CachedGenerator, ChatRequest, Completion, GenerationCache
from quit.models.generation.base import OnReply
from quit.models.prompting import load_prompt

PROMPT = load_prompt("probe")


class Counting:
    """Counts what reaches the model; empty or failing where told (a real model cannot be told to)."""

    name = identity = "counting"

    def __init__(
        self,
        replies: dict[str, str] | None = None,
        fail_after: int | None = None,
        before: Callable[[Sequence[ChatRequest]], Any] = lambda _: None,
    ) -> None:
        self.asked: list[str] = []
        self._replies, self._fail_after, self._before = replies or {}, fail_after, before

    def generate(self, requests: Sequence[ChatRequest], done: OnReply) -> None:
        self._before(requests)
        for position, request in enumerate(requests):
            if self._fail_after is not None and position >= self._fail_after:
                raise ServerError("gone")
            question = request.fields["question"]
            self.asked.append(question)
            done(position, Completion(self._replies.get(question, f"to {question}"), "stop", 5, 1))


def request(question: str, **more) -> ChatRequest:
    return ChatRequest(PROMPT, {"question": question}, more.pop("max_tokens", 32), **more)


def ask(model: Counting, cache: GenerationCache, questions: str) -> list[str]:
    """Ask for a letter each."""
    replies = CachedGenerator(model, cache).complete([request(question) for question in questions])
    return [reply.text for reply in replies]

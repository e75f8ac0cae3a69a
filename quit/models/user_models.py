"""A user's own models: a class that a profile names, or an object that :func:`quit.build` was given.

A reader has ``answer(prompts)``, which returns a string (cleaned as a language model's reply is) or a
:class:`quit.models.protocols.Reply` per prompt. A judge has ``verdicts(items)``, which returns True, False, None or a
:class:`quit.models.protocols.Verdict` per item. Either may take ``sample``, the number of a repetition. One thread at
a time calls it, with at most :data:`AT_ONCE` items; their replies are on disk before the next call.
"""

from __future__ import annotations

import inspect
import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any

from quit.errors import InputError
from quit.models.generation.base import ChatRequest, Completing, Completion, OnReply, canonical, free_memory
from quit.models.generation.ledger import Ledger
from quit.models.loading import once
from quit.models.prompting import PromptTemplate
from quit.models.protocols import NO_ANSWER, JudgeItem, Prompt, Reply, Verdict
from quit.models.readers import cleaning
from quit.models.user_classes import user_code, user_model, user_model_identity
from quit.settings import JudgeSettings, ReaderSettings
from quit.text.words import counted

VERSION = 2
"""Raised when the same reply of a reader would give another answer."""
AT_ONCE = 64
"""Items per call: what a killed run has to ask again, at most."""
_ITEM = PromptTemplate("python", "", (("user", "{item}"),))
_TYPES = {"raw": str, "answer": str, "ended": str, "correct": bool | None, "probability": float | int | None}
"""Fields of a reply or verdict -> what tables can hold."""


class UserGenerator:
    """A user's model behind the generation cache: an item goes in and a reply or verdict comes out, both as JSON."""

    def __init__(self, spec: ReaderSettings | JudgeSettings, ledger: Ledger) -> None:
        self.name = spec.name
        self._ledger = ledger
        self.identity = user_model_identity(spec)
        self._spec = spec
        self._lock = threading.Lock()

    def generate(self, requests: Sequence[ChatRequest], on_reply: OnReply) -> None:
        """See :class:`quit.models.generation.base.Generator`. One caller at a time."""
        for sample, positions in groupby(range(len(requests)), lambda position: requests[position].sample):
            of_sample = list(positions)
            for start in range(0, len(of_sample), AT_ONCE):
                part = of_sample[start : start + AT_ONCE]
                items = [json.loads(requests[position].fields["item"]) for position in part]
                with self._lock:
                    self._ledger.check_not_stopped()
                    completions = self._ask(items, sample)
                commits = [on_reply(*pair) for pair in zip(part, completions, strict=True)]
                for commit in filter(None, commits):
                    commit.result()

    def release(self) -> None:
        """See :class:`quit.models.generation.base.Generator`."""
        with self._lock:
            if self.__dict__.pop("_model", None) is not None:
                free_memory()

    def _ask(self, items: list[dict[str, Any]], sample: int) -> list[Completion]:
        reads = isinstance(self._spec, ReaderSettings)
        method = getattr(self._model, "answer" if reads else "verdicts")
        options = {"sample": sample} if "sample" in inspect.signature(method).parameters else {}
        kind = Prompt if reads else JudgeItem
        with user_code(f"{self.name}: {method.__qualname__} raised", remark=" What it answered before is kept."):
            replies = list(method([kind(**_with_tuples(item)) for item in items], **options))
        if len(replies) != len(items):
            raise InputError(
                f"{self.name}: {method.__qualname__} returned {counted(len(replies), 'reply', 'replies')} to "
                f"{counted(len(items), 'item')}."
            )
        try:
            return [Completion(canonical(_as_fields(reply, reads)).decode(), "stop") for reply in replies]
        except (TypeError, ValueError) as error:
            raise InputError(f"{self.name}: {method.__qualname__} returned what is no reply: {error}.") from None

    @once
    def _model(self) -> Any:
        return user_model(self._spec)


def _with_tuples(item: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in item.items()}


def _as_fields(reply: Any, reads: bool) -> dict[str, Any]:
    """Return a reply or verdict as JSON values. Raises ``TypeError`` for anything else."""
    if isinstance(reply, Reply if reads else Verdict):
        fields = asdict(reply)
        for name, kind in _TYPES.items():
            if name in fields and not isinstance(fields[name], kind):
                raise TypeError(f"a {type(reply).__name__} whose {name} is {fields[name]!r}")
        if (probability := fields.get("probability")) is not None and not 0 <= probability <= 1:
            raise ValueError(f"a Verdict whose probability is {probability}, not between 0 and 1")
        return fields
    reply = reply.tolist() if hasattr(reply, "tolist") else reply  # numpy's True is no bool
    if reads and isinstance(reply, str):
        return {"raw": reply}
    if not reads and (reply is None or isinstance(reply, bool)):
        return {"correct": reply, "probability": None, "raw": ""}
    expected = "str or Reply" if reads else "True, False, None or Verdict"
    raise TypeError(f"{type(reply).__name__}, expected {expected}")


def _request(item: Prompt | JudgeItem, sample: int) -> ChatRequest:
    fields = {"item": canonical(asdict(item)).decode()}
    return ChatRequest(_ITEM, fields, 0, sample=sample, group=item.question_id)


@dataclass(eq=False)
class UserReader:
    """A reader whose class is the user's. ``sentences``: what becomes of strings that are sentences
    (:func:`quit.models.readers.cleaning.clean_answer`)."""

    name: str
    generator: Completing
    sentences: cleaning.Sentences = "drop"

    def __post_init__(self) -> None:
        self.identity = f"{self.generator.identity}|reply-{VERSION}|{cleaning.cleaning_identity(self.sentences)}"

    def answer(self, prompts: Sequence[Prompt], sample: int = 0) -> list[Reply]:
        """Return one reply per prompt, in order."""
        completions = self.generator.complete([self.request(prompt, sample) for prompt in prompts])
        return [self._reply(json.loads(completion.text)) for completion in completions]

    def request(self, prompt: Prompt, sample: int = 0) -> ChatRequest:
        """Return what the model is asked for a prompt."""
        return _request(prompt, sample)

    def _reply(self, fields: Mapping[str, str]) -> Reply:
        raw, finish_reason = cleaning.without_controls(fields["raw"]), fields.get("ended", "stop")
        if "answer" not in fields:
            return Reply(raw, cleaning.clean_answer(raw, finish_reason, self.sentences), finish_reason)
        answer = cleaning.without_controls(fields["answer"]).strip()
        return Reply(raw, NO_ANSWER if not answer or cleaning.says_no_answer(answer) else answer, finish_reason)


@dataclass(eq=False)
class UserJudge:
    """A judge whose class is the user's."""

    name: str
    generator: Completing

    def __post_init__(self) -> None:
        self.identity = self.generator.identity

    def verdicts(self, items: Sequence[JudgeItem], sample: int = 0) -> list[Verdict]:
        """Return one verdict per item, in order."""
        completions = self.generator.complete([self.request(item, sample) for item in items])
        return [Verdict(**json.loads(completion.text)) for completion in completions]

    def request(self, item: JudgeItem, sample: int = 0) -> ChatRequest:
        """Return what the model is asked about an answer."""
        return _request(item, sample)

"""Ask each language model of a profile once, to see what it is sent, what it replies and what that costs."""

from __future__ import annotations

from pathlib import Path
from typing import TypedDict

from quit.engine.usage import spent
from quit.errors import QuitError
from quit.models.generation import CachedGenerator, Meter
from quit.models.generation.ledger import Ledger
from quit.models.language_models import language_judge, language_reader, make_generator
from quit.models.protocols import JudgeItem, Prompt
from quit.settings import JudgeSettings, ReaderSettings, Settings
from quit.sources import SourceRef, read_source
from quit.sources.records import RawQuestion


class Trial(TypedDict, total=False):
    """What a model was asked and replied; of one that fails only ``model``, ``role`` and ``fault``.

    ``messages``: the chat (role and content); ``reply``: as it came, without thoughts; ``read_as``: the answer, or the
    verdict: Yes, No, unread; ``requests``: all that were sent, more than one where replies were empty, unreadable or
    did not come. Tokens are of all replies, ``thought_tokens`` a part of ``completion_tokens``; ``cost``: in the
    currency of the prices, None without prices.
    """

    model: str
    role: str
    messages: list[dict[str, str]]
    reply: str
    read_as: str
    requests: int
    prompt_tokens: int
    completion_tokens: int
    thought_tokens: int
    cost: float | None
    fault: str


def try_models(settings: Settings, questions: Path) -> list[Trial]:
    """Ask each reader about a passage of a JSON Lines file's first question, and the judge about its gold answer.

    Only language models and classes of the user are asked, one request at a time and without long waits. No reply is
    kept or taken from the cache.
    """
    changes = {"batch": False, "attempts": 2, "patience_seconds": 0.0}
    servers = tuple(server.model_copy(update=changes) for server in settings.servers)
    settings = settings.model_copy(update={"servers": servers})
    question = next(record.question for record in read_source(SourceRef("jsonl", questions)) if record.question)
    return [_try(spec, settings, question) for spec in settings.replying_models]


def _try(spec: ReaderSettings | JudgeSettings, settings: Settings, question: RawQuestion) -> Trial:
    trial: Trial = {"model": spec.name, "role": "reader" if isinstance(spec, ReaderSettings) else "judge"}
    meter = Meter()
    try:
        generator = CachedGenerator(make_generator(spec, settings, meter, Ledger()), None, meter)
        if isinstance(spec, ReaderSettings):
            reader = language_reader(spec, settings, generator)
            hints = tuple(hint.text for hint in question.hints[: settings.passages.most_hints])
            prompt = Prompt("try", question.question, hints)
            [reply] = reader.answer([prompt])
            request, raw, read_as = reader.request(prompt), reply.raw, reply.answer
        else:
            judge = language_judge(spec, generator)
            item = JudgeItem("try", question.question, question.answers, question.answers[0])
            [verdict] = judge.verdicts([item])
            request, raw = judge.request(item), verdict.raw
            read_as = {True: "Yes", False: "No", None: "unread"}[verdict.correct]
    except QuitError as error:
        return {**trial, "fault": str(error)}
    usage = meter.snapshot()[spec.name]
    return {
        **trial, "messages": request.messages(), "reply": raw, "read_as": read_as,
        "requests": usage.requests + usage.retries, "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "thought_tokens": usage.thought_tokens, "cost": spent(settings, spec, usage),
    }  # fmt: skip

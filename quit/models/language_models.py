"""Language models and users' classes, from what a profile says of a reader or judge."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from quit.models.generation import Meter
from quit.models.generation.base import ChatRequest, Completing, Completion, Generator, ModelOptions
from quit.models.generation.in_process import VllmGenerator
from quit.models.generation.ledger import Account, Ledger
from quit.models.generation.local import TransformersGenerator
from quit.models.judges import JUDGE_FIELDS, GptEvalJudge
from quit.models.prompting import PromptTemplate, load_prompt
from quit.models.readers.llm import PROBE_FIELDS, READER_FIELDS, LLMReader
from quit.models.user_classes import user_model_identity
from quit.models.user_models import UserGenerator, UserJudge, UserReader
from quit.settings import JudgeSettings, ReaderSettings, Settings


def options_of(spec: ReaderSettings | JudgeSettings) -> ModelOptions:
    """Return a model's options."""
    names = "revision template_options extra token_field omit effort thinking thinking_tokens".split()
    kind = "chat" if spec.kind == "server" else spec.kind
    return ModelOptions(spec.model or "", kind=kind, **{name: getattr(spec, name) for name in names})


def generator_identity(spec: ReaderSettings | JudgeSettings) -> str:
    """Return the identity of a model's generator, without loading a model."""
    return user_model_identity(spec) if spec.kind == "python" else options_of(spec).identity


def make_generator(spec: ReaderSettings | JudgeSettings, settings: Settings, meter: Meter, ledger: Ledger) -> Generator:
    """Return the generator of a reader or judge. Nothing is loaded or asked before its first use."""
    if spec.kind == "python":
        return UserGenerator(spec, ledger)
    options = options_of(spec)
    if spec.kind == "server":
        from quit.models.generation.server import ServerGenerator

        account = Account(ledger, partial(settings.cost, spec))
        server = settings.server(spec.server or "")
        if server.batch:
            from quit.models.generation.batch import BatchGenerator

            return BatchGenerator(spec.name, options, server, meter, account)
        return ServerGenerator(spec.name, options, server, meter, account)
    if spec.kind == "vllm":
        return VllmGenerator(spec.name, options, ledger=ledger)
    return TransformersGenerator(spec.name, options, spec.device, ledger)


def reader_prompts(spec: ReaderSettings) -> tuple[PromptTemplate, PromptTemplate]:
    """Return a reader's prompts with and without context."""
    return load_prompt(spec.prompt, READER_FIELDS), load_prompt(spec.probe_prompt, PROBE_FIELDS)


def judge_prompt(spec: JudgeSettings) -> PromptTemplate:
    """Return the judge's prompt."""
    return load_prompt(spec.prompt, JUDGE_FIELDS)


def language_judge(spec: JudgeSettings, generator: Completing | None = None) -> GptEvalJudge | UserJudge:
    """Return the judge that asks ``generator``; without one, for its identity alone."""
    generator = generator or OfflineGenerator(generator_identity(spec))
    if spec.kind == "python":
        return UserJudge(spec.name, generator)
    return GptEvalJudge(spec.name, generator, judge_prompt(spec), spec.max_new_tokens, spec.attempts, spec.constrained)


class OfflineGenerator:
    """Takes the place of a generator where requests and identities are made and nothing is asked."""

    def __init__(self, identity: str) -> None:
        self.identity = identity

    def complete(self, requests: Sequence[ChatRequest]) -> list[Completion]:
        """Raise ``AssertionError``."""
        raise AssertionError("this model must not be asked")


def language_reader(
    spec: ReaderSettings, settings: Settings, generator: Completing | None = None
) -> LLMReader | UserReader:
    """Return the reader that asks ``generator``; without one, for its requests and identity alone."""
    labels, generator = settings.labels, generator or OfflineGenerator(generator_identity(spec))
    if spec.kind == "python":
        return UserReader(spec.name, generator, labels.sentences)
    return LLMReader(
        spec.name,
        generator,
        *reader_prompts(spec),
        max_tokens=labels.max_new_tokens,
        temperature=labels.temperature,
        probe_temperature=settings.probe.temperature,
        stop=spec.stop,
        sentences=labels.sentences,
    )

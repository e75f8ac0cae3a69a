"""From the settings of a language model or a user's class to its generator, for :mod:`quit.models.factory`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from quit.models.generation.base import ChatRequest, Completing, Completion, Generator, ModelOptions
from quit.models.generation.meter import Meter
from quit.models.judges.gpt_eval import JUDGE_FIELDS, GptEvalJudge
from quit.models.own import OwnGenerator, OwnJudge, OwnReader, own_identity
from quit.models.prompting import PromptTemplate, load_prompt
from quit.models.readers.llm import PROBE_FIELDS, READER_FIELDS, LLMReader
from quit.settings import JudgeSettings, ReaderSettings, Settings

if TYPE_CHECKING:
    from quit.settings import LanguageModel


def options_of(spec: LanguageModel) -> ModelOptions:
    """Return a model's options."""
    return ModelOptions(spec.model or "", spec.revision, spec.template_options, spec.extra)


def generator_identity(spec: ReaderSettings | JudgeSettings) -> str:
    """Return the identity of a model's generator, without loading a model."""
    if spec.kind == "python":
        return own_identity(spec)
    prefix = {"server": "chat", "vllm": "vllm", "transformers": "transformers"}[spec.kind]
    return f"{prefix}/{options_of(spec).identity}"


def make_generator(spec: ReaderSettings | JudgeSettings, settings: Settings, meter: Meter) -> Generator:
    """Return the generator of a reader or judge. Nothing is loaded or asked before its first use."""
    if spec.kind == "python":
        return OwnGenerator(spec)
    options = options_of(spec)
    if spec.kind == "server":
        from quit.models.generation.server import ServerGenerator

        return ServerGenerator(spec.name, options, settings.server(spec.server or ""), meter)
    if spec.kind == "vllm":
        from quit.models.generation.in_process import VllmGenerator

        return VllmGenerator(spec.name, options)
    from quit.models.generation.local import TransformersGenerator

    return TransformersGenerator(spec.name, options, spec.device)


def reader_prompts(spec: ReaderSettings) -> tuple[PromptTemplate, PromptTemplate]:
    """Return a reader's prompts with and without context."""
    return load_prompt(spec.prompt, READER_FIELDS), load_prompt(spec.probe_prompt, PROBE_FIELDS)


def judge_prompt(spec: JudgeSettings) -> PromptTemplate:
    """Return the judge's prompt."""
    return load_prompt(spec.prompt, JUDGE_FIELDS)


def language_judge(spec: JudgeSettings, generator: Completing) -> GptEvalJudge | OwnJudge:
    """Return the judge that asks ``generator``."""
    if spec.kind == "python":
        return OwnJudge(spec.name, generator)
    return GptEvalJudge(spec.name, generator, judge_prompt(spec), spec.max_new_tokens, spec.attempts, spec.constrained)


class Unasked:
    """Takes the place of a generator where requests and identities are made and nothing is asked."""

    def __init__(self, identity: str) -> None:
        self.identity = identity

    def complete(self, requests: Sequence[ChatRequest]) -> list[Completion]:
        """Raise ``AssertionError``."""
        raise AssertionError("this model must not be asked")


def language_reader(spec: ReaderSettings, settings: Settings, generator: Completing) -> LLMReader | OwnReader:
    """Return the reader that asks ``generator``."""
    labels = settings.labels
    if spec.kind == "python":
        return OwnReader(spec.name, generator, labels.sentences)
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


def language_reader_identity(spec: ReaderSettings, settings: Settings) -> str:
    """Return the identity of an LLM reader."""
    return language_reader(spec, settings, Unasked(generator_identity(spec))).identity


def language_judge_identity(spec: JudgeSettings) -> str:
    """Return the identity of an LLM judge."""
    return language_judge(spec, Unasked(generator_identity(spec))).identity

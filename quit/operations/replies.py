"""Before a build asks language models: whether their servers take key and model, and what becomes of kept replies."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from http.client import HTTPException
from urllib.error import HTTPError

from quit.common.endpoints import address
from quit.common.progress import note
from quit.engine.pipeline import Pipeline
from quit.engine.plan import StageRun
from quit.engine.repair import discard_to_compare
from quit.errors import ServerError, SettingsError
from quit.models.generation.serving import model_names, refuses_key
from quit.models.language_models import generator_identity, language_reader
from quit.models.prompting import CHARACTERS_A_TOKEN
from quit.models.user_classes import check_given, is_absent
from quit.operations.plan import planned_questions
from quit.settings import JudgeSettings, ReaderSettings, ServerSettings
from quit.stages.read import read_stage
from quit.text.secrets import shown
from quit.text.words import counted

_Model = ReaderSettings | JudgeSettings
_UNTIL_THEN = "Until then only kept replies are used."


def check_servers(pipeline: Pipeline) -> None:
    """Tell which kept replies of this build's models come from other servers, and ask each server for its list of
    models. Only the first has to be there, where no reply of its model is kept; the others may be started later.

    Raises :class:`ServerError` where nothing accepts a connection at that one, and ``SettingsError`` for a server
    without address or key, and, where no reply of a model is kept, for a server that refuses the key, and for an object
    of another process. Later stages raise the same once they need a reply.
    """
    runs = pipeline.left_to_do
    kept_models = {row["model"] for row in pipeline.models.cache.statistics()}
    for spec in (spec for run in runs if run.reader for spec in _asked(pipeline, run)):
        if is_absent(spec) and generator_identity(spec) not in kept_models:
            check_given(spec)
    if served := _served(pipeline, runs):
        _tell_origins(pipeline, {generator_identity(spec): spec for spec in served})
        _ask_servers(pipeline, served, kept_models)


def forget_replies(pipeline: Pipeline) -> None:
    """Delete the kept replies of this build's language models, and its tables that rest on them.

    The caller holds the workspace. Later tables are made again only where these come out different. Raises what
    :func:`check_servers` raises where no reply is kept; then nothing is deleted.
    """
    for spec in pipeline.settings.replying_models:
        if is_absent(spec):
            check_given(spec)
    if served := _served(pipeline, pipeline.runs):
        _ask_servers(pipeline, served, set())
    for run in pipeline.runs:
        if [*_asked(pipeline, run)]:
            discard_to_compare(pipeline.workspace, pipeline.folder(run))
    cache, models = pipeline.models.cache, pipeline.settings.replying_models
    dropped = sum(cache.drop(identity) for identity in {generator_identity(spec) for spec in models})
    note(f"{counted(dropped, 'kept reply', 'kept replies')} deleted. This build's language models are asked again.")


def _served(pipeline: Pipeline, runs: Sequence[StageRun]) -> list[_Model]:
    """Return the models at servers that stage runs ask, each once, in the order in which they do."""
    specs = {spec.name: spec for run in runs for spec in _asked(pipeline, run) if spec.kind == "server"}
    return list(specs.values())


def _asked(pipeline: Pipeline, run: StageRun) -> Iterator[_Model]:
    """Yield the language models that a stage run asks, in the order in which it does."""
    settings, stage = pipeline.settings, run.stage
    names = [run.reader] if run.reader else []
    scored = "convergence" in stage.models and settings.convergence.method == "llm"
    names += [settings.convergence.language_model or ""] if scored else []
    asks_judge = "judge" in stage.models or (stage is read_stage and pipeline.strategy.in_turn)
    names += [settings.judge.name] if asks_judge else []
    models = {spec.name: spec for spec in settings.replying_models}
    yield from (models[name] for name in names if name in models)


def _tell_origins(pipeline: Pipeline, models: dict[str, _Model]) -> None:
    for row in pipeline.models.cache.statistics():
        spec = models.get(row["model"])
        if spec is None:
            continue
        addresses = map(address, pipeline.settings.server(spec.server or "").urls())
        if row["origin"].partition(" ")[0] not in addresses:
            date = time.strftime("%Y-%m-%d", time.localtime(row["last"]))
            text = f"{counted(row['replies'], 'kept reply', 'kept replies')} of {spec.model} come from {row['origin']}"
            note(f"{text}, {date}. To ask again: --fresh-replies, fresh_replies=True", loud=True)


def _ask_servers(pipeline: Pipeline, models: Sequence[_Model], kept_models: Set[str]) -> None:
    """Ask for lists of models. ``kept_models``: identities of those with kept replies."""
    servers = [pipeline.settings.server(name) for name in dict.fromkeys(spec.server or "" for spec in models)]
    for server in servers:
        specs = [spec for spec in models if spec.server == server.name]
        has_replies = all(generator_identity(spec) in kept_models for spec in specs)
        try:
            urls, key = server.urls(), server.key()
        except SettingsError as error:
            if not has_replies:
                raise
            note(f"{error} {_UNTIL_THEN}", loud=True)
            continue
        absent = [*filter(None, (_ask_server(pipeline, server, specs, url, key, has_replies) for url in urls))]
        for spec in specs:
            if spec.missing_prices and server.api_key_env and server.api_key_needed:
                note(f"{spec.name} has no {spec.missing_prices}: quit plan counts 0 for it.", loud=True)
        if absent:
            faults = "; ".join(absent)
            text = f"The server of {_names(specs)} did not answer: {faults}. {server.remedy_for(faults)}"
            is_first = server is servers[0]
            if is_first and len(absent) == len(urls) and not has_replies:
                raise ServerError(text)
            note(f"{text} {_UNTIL_THEN if is_first else 'It is needed later.'}", loud=is_first)


def _ask_server(
    pipeline: Pipeline, server: ServerSettings, specs: Sequence[_Model], url: str, key: str | None, has_replies: bool
) -> str | None:
    """Ask one address for its list of models and note what these models lack there; return its fault where nothing
    accepts a connection."""
    try:
        names = model_names(url, key)
    except HTTPError as error:
        if refuses_key(error):
            text = f"{url} refuses the API key of {_names(specs)} (HTTP {error.code}). {server.key_remedy}"
            if not has_replies:
                raise SettingsError(text) from None
            note(f"{text} {_UNTIL_THEN}", loud=True)
        return None
    except (HTTPException, TimeoutError, ValueError, KeyError, TypeError, RecursionError):
        return None  # something is there, and may be busy
    except OSError as error:
        return f"{url} ({shown(str(getattr(error, 'reason', error)))})"
    for spec in specs:
        if (name := (spec.model or "").removeprefix("models/")) not in names:
            others = shown(", ".join([*names][:5])) or "nothing"
            note(f"{url} does not list {spec.model}, which {spec.name} needs; it lists {others}.", loud=True)
        elif (context := names[name]) and isinstance(spec, ReaderSettings):
            _tell_longest(pipeline, spec, url, context)
    return None


def _names(specs: Sequence[_Model]) -> str:
    return ", ".join(spec.name for spec in specs)


def _tell_longest(pipeline: Pipeline, spec: ReaderSettings, url: str, context: int) -> None:
    """Tell where a reader's longest prompt of a stage, with its reply, needs more than the context of its server."""
    reader, questions = language_reader(spec, pipeline.settings), planned_questions(pipeline)[0]
    room = pipeline.settings.labels.max_new_tokens + spec.thinking_tokens
    for stage, all_hints in (("probe", 0), ("read", None)):
        prompts = [replace(question, hints=question.hints[:all_hints]) for question in questions]
        longest = max(prompts, key=lambda prompt: len(prompt.question) + sum(map(len, prompt.hints)), default=None)
        messages = reader.request(longest).messages() if longest else []
        tokens = sum(len(message["content"]) for message in messages) / CHARACTERS_A_TOKEN
        if longest and tokens + room > context:
            note(
                f"{spec.name}, {stage}: the prompt of {longest.question_id}, about {tokens:,.0f} tokens, and its reply "
                f"({room:,}) need more than the {context:,} that {url} tells. Longer prompts are refused there.",
                loud=True,
            )

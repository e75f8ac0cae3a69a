"""Before a build asks language models: whether the first server is there, and what becomes of kept replies."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from http.client import HTTPException
from urllib.error import HTTPError

from quit.common.progress import note
from quit.engine.damage import discard_to_compare
from quit.engine.pipeline import Pipeline
from quit.engine.plan import StageRun
from quit.errors import ServerError, SettingsError
from quit.models.factory import generator_identity, language_reader
from quit.models.generation.serving import listed, refuses_key
from quit.operations.plan import cached_replies, is_current, passage_paths, planned_questions
from quit.settings import JudgeSettings, ReaderSettings
from quit.text.secrets import shown
from quit.text.words import counted

_SAMPLE = 20  # questions whose passages are looked up


def look_ahead(pipeline: Pipeline) -> None:
    """Tell which kept replies of this build's models come from other servers, and ask the first server that is needed
    whether it is there. The others may not be started yet.

    Raises :class:`ServerError` where nothing accepts a connection and not all replies are kept, and ``SettingsError``
    for a server without address or key, or that refuses the key.
    """
    if served := _served(pipeline, [run for run in pipeline.runs if not pipeline.is_done(run)]):
        _tell_origins(pipeline, {generator_identity(spec): spec for _, spec in served})
        _ask_first(pipeline, *served[0])


def forget_replies(pipeline: Pipeline) -> None:
    """Delete the kept replies of this build's language models, and its tables that rest on them.

    The caller holds the workspace. Later tables are made again only where these come out different. Raises
    :class:`ServerError` where nothing accepts a connection at the first server; then nothing is deleted.
    """
    if served := _served(pipeline, pipeline.runs):
        _ask_first(pipeline, *served[0], fresh=True)
    for run in pipeline.runs:
        if [*_asked(pipeline, run)]:
            discard_to_compare(pipeline.workspace, pipeline.folder(run))
    cache, models = pipeline.models.cache, pipeline.settings.replying_models
    dropped = sum(cache.drop(identity) for identity in {generator_identity(spec) for spec in models}) if cache else 0
    note(f"{counted(dropped, 'kept reply', 'kept replies')} deleted. This build's language models are asked again.")


def _served(pipeline: Pipeline, runs: Sequence[StageRun]) -> list[tuple[StageRun, ReaderSettings | JudgeSettings]]:
    return [(run, spec) for run in runs for spec in _asked(pipeline, run) if spec.kind == "server"]


def _asked(pipeline: Pipeline, run: StageRun) -> Iterator[ReaderSettings | JudgeSettings]:
    """Yield the language models that a stage run asks, in the order in which it does."""
    settings, stage = pipeline.settings, run.stage.name
    names = [run.reader] if run.reader else []
    names += [reader.name for reader in pipeline.strategy.labelers] if stage == "select" else []
    scored = stage == "rank" and settings.convergence.method == "llm"
    names += [settings.convergence.language_model or ""] if scored else []
    judged = stage in ("probe", "controls", "select", "judge") or (stage == "read" and pipeline.strategy.in_turn)
    names += [settings.judge.name] if judged else []
    models = {spec.name: spec for spec in settings.replying_models}
    yield from (models[name] for name in names if name in models)


def _tell_origins(pipeline: Pipeline, models: dict[str, ReaderSettings | JudgeSettings]) -> None:
    for row in pipeline.models.cache.statistics() if pipeline.models.cache else ():
        spec = models.get(row["model"])
        if spec is None:
            continue
        address = row["origin"].partition(" ")[0]
        if address not in [shown(url.rstrip("/")) for url in pipeline.settings.server(spec.server or "").urls()]:
            date = time.strftime("%Y-%m-%d", time.localtime(row["last"]))
            text = f"{counted(row['replies'], 'kept reply', 'kept replies')} of {spec.model} come from {row['origin']}"
            note(f"{text}, {date}. To ask again: --fresh-replies, fresh_replies=True", loud=True)


def _ask_first(pipeline: Pipeline, run: StageRun, spec: ReaderSettings | JudgeSettings, *, fresh: bool = False) -> None:
    server = pipeline.settings.server(spec.server or "")
    urls, key = server.urls(), server.key()
    absent = []
    for url in urls:
        try:
            served = [str(model["id"]) for model in listed(url, key)]
        except HTTPError as error:
            if refuses_key(error):
                raise SettingsError(
                    f"{url} refuses the API key of {spec.name} (HTTP {error.code}). {server.key_remedy}"
                ) from None
            continue
        except (HTTPException, TimeoutError, ValueError, KeyError, TypeError, RecursionError):
            continue  # something is there, and may be busy
        except OSError as error:
            absent.append(f"{url} ({shown(str(getattr(error, 'reason', error)))})")
            continue
        if spec.model not in served:
            names = shown(", ".join(served[:5])) or "nothing"
            note(f"{url} does not list {spec.model}, which {spec.name} needs; it lists {names}.", loud=True)
    if not absent:
        return
    text = f"The server of {spec.name} did not answer: {'; '.join(absent)}. {server.remedy}"
    if len(absent) == len(urls) and (fresh or _is_needed(pipeline, run, spec)):
        raise ServerError(text)
    note(f"{text} Until then only kept replies are used.", loud=True)


def _is_needed(pipeline: Pipeline, run: StageRun, spec: ReaderSettings | JudgeSettings) -> bool:
    """Whether it is certain that a reply is not kept. Of a judge it never is: its questions follow from answers.

    Before the hints are ranked, a question may still be left out, so one reply that is kept leaves it open; so does
    ``labels.partial``.
    """
    if not isinstance(spec, ReaderSettings) or run.reader != spec.name or run.stage.on_demand:
        return False
    if (cache := pipeline.models.cache) is None:
        return True
    questions, _ = planned_questions(pipeline)
    reads = run.stage.name == "read"
    if reads:
        questions = questions[:: len(questions) // _SAMPLE + 1]
    reader = language_reader(spec, pipeline.settings)
    repetitions = 1 if reads else pipeline.settings.probe.repetitions
    needed = cached = 0
    for question in questions:
        paths = passage_paths(len(question.hints)) if reads else [()]
        needed += len(paths) * repetitions
        cached += cached_replies(reader, question, paths, repetitions, cache)
    certain = is_current(pipeline, "rank") and not pipeline.strategy.in_turn
    return cached < needed if certain else not cached and needed > 0

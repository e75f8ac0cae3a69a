"""Before a build asks language models: whether their servers take key and model, and what becomes of kept replies."""

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
from quit.models.generation.serving import model_names, refuses_key
from quit.models.user_classes import check_given, is_absent
from quit.operations.plan import cached_replies, is_current, planned_questions
from quit.settings import JudgeSettings, ReaderSettings
from quit.stages.labelling.passages import permutations
from quit.text.secrets import shown
from quit.text.words import counted

_SAMPLE = 20  # questions whose passages are looked up
_Model = ReaderSettings | JudgeSettings
_Served = list[tuple[StageRun, _Model]]


def check_servers(pipeline: Pipeline) -> None:
    """Tell which kept replies of this build's models come from other servers, and ask each server that is needed for
    its list of models, unless all replies are kept. Only the first has to be there; the others may be started later.

    Raises :class:`ServerError` where nothing accepts a connection at the first and not all replies are kept, and
    ``SettingsError`` for a server without address or key, or that refuses the key, and, where not all replies seem to
    be kept, for the first object of another process among the readers and the judges that their stages ask. Later
    stages raise the same for a judge once they need a reply of it.
    """
    runs = [run for run in pipeline.runs if not pipeline.is_done(run)]
    absent = [spec for run in runs if run.reader for spec in _asked(pipeline, run) if is_absent(spec)]
    served = _served(pipeline, runs)
    kept = bool(absent or served) and _is_kept(pipeline, runs)
    if absent and not kept:
        check_given(absent[0])
    if served:
        _tell_origins(pipeline, {generator_identity(spec): spec for _, spec in served})
        if not (kept and _is_certain(pipeline)):
            _ask_servers(pipeline, served, kept=kept)


def forget_replies(pipeline: Pipeline) -> None:
    """Delete the kept replies of this build's language models, and its tables that rest on them.

    The caller holds the workspace. Later tables are made again only where these come out different. Raises what
    :func:`check_servers` raises; then nothing is deleted.
    """
    if served := _served(pipeline, pipeline.runs):
        _ask_servers(pipeline, served, fresh=True)
    for run in pipeline.runs:
        if [*_asked(pipeline, run)]:
            discard_to_compare(pipeline.workspace, pipeline.folder(run))
    cache, models = pipeline.models.cache, pipeline.settings.replying_models
    dropped = sum(cache.drop(identity) for identity in {generator_identity(spec) for spec in models}) if cache else 0
    note(f"{counted(dropped, 'kept reply', 'kept replies')} deleted. This build's language models are asked again.")


def _served(pipeline: Pipeline, runs: Sequence[StageRun]) -> _Served:
    return [(run, spec) for run in runs for spec in _asked(pipeline, run) if spec.kind == "server"]


def _asked(pipeline: Pipeline, run: StageRun) -> Iterator[_Model]:
    """Yield the language models that a stage run asks, in the order in which it does."""
    settings, stage = pipeline.settings, run.stage.name
    names = [run.reader] if run.reader else []
    scored = stage == "rank" and settings.convergence.method == "llm"
    names += [settings.convergence.language_model or ""] if scored else []
    judged = stage in ("probe", "judge") or (stage == "read" and pipeline.strategy.in_turn)
    names += [settings.judge.name] if judged else []
    models = {spec.name: spec for spec in settings.replying_models}
    yield from (models[name] for name in names if name in models)


def _tell_origins(pipeline: Pipeline, models: dict[str, _Model]) -> None:
    for row in pipeline.models.cache.statistics() if pipeline.models.cache else ():
        spec = models.get(row["model"])
        if spec is None:
            continue
        address = row["origin"].partition(" ")[0]
        if address not in [shown(url.rstrip("/")) for url in pipeline.settings.server(spec.server or "").urls()]:
            date = time.strftime("%Y-%m-%d", time.localtime(row["last"]))
            text = f"{counted(row['replies'], 'kept reply', 'kept replies')} of {spec.model} come from {row['origin']}"
            note(f"{text}, {date}. To ask again: --fresh-replies, fresh_replies=True", loud=True)


def _ask_servers(pipeline: Pipeline, served: _Served, *, kept: bool = False, fresh: bool = False) -> None:
    """Ask for lists of models. ``kept``: all replies seem to be kept; ``fresh``: none will be."""
    models = {spec.name: spec for _, spec in served}.values()
    servers = [pipeline.settings.server(name) for name in dict.fromkeys(spec.server or "" for spec in models)]
    until = "Until then only kept replies are used."
    for server, urls, key in [(server, server.urls(), server.key()) for server in servers]:
        specs = [spec for spec in models if spec.server == server.name]
        users, absent = ", ".join(spec.name for spec in specs), []
        for url in urls:
            try:
                names = model_names(url, key)
            except HTTPError as error:
                if refuses_key(error):
                    text = f"{url} refuses the API key of {users} (HTTP {error.code}). {server.key_remedy}"
                    if not kept:
                        raise SettingsError(text) from None
                    note(f"{text} {until}", loud=True)
                continue
            except (HTTPException, TimeoutError, ValueError, KeyError, TypeError, RecursionError):
                continue  # something is there, and may be busy
            except OSError as error:
                absent.append(f"{url} ({shown(str(getattr(error, 'reason', error)))})")
                continue
            for spec in specs:
                if (spec.model or "").removeprefix("models/") not in names:
                    others = shown(", ".join(names[:5])) or "nothing"
                    note(f"{url} does not list {spec.model}, which {spec.name} needs; it lists {others}.", loud=True)
        for spec in specs:
            if spec.missing_prices and server.api_key_env and server.api_key_needed:
                note(f"{spec.name} has no {spec.missing_prices}: quit plan counts 0 for it.", loud=True)
        if absent:
            text = f"The server of {users} did not answer: {'; '.join(absent)}. {server.remedy}"
            is_first = server is servers[0]
            if is_first and len(absent) == len(urls) and (fresh or _is_needed(pipeline, *served[0])):
                raise ServerError(text)
            note(f"{text} {until if is_first else 'It is needed later.'}", loud=is_first)


def _is_certain(pipeline: Pipeline) -> bool:
    """Whether the passages that readers will be asked about are known before the build."""
    return is_current(pipeline, "rank") and not pipeline.strategy.in_turn


def _is_kept(pipeline: Pipeline, runs: Sequence[StageRun]) -> bool:
    """Whether all replies seem to be kept: those of readers, as far as their requests are known, and some of others.

    Without a language model among the readers nothing tells, since the judge's requests follow from answers.
    """
    kept_models = {row["model"] for row in (pipeline.models.cache.statistics() if pipeline.models.cache else ())}
    models = [(run, spec) for run in runs for spec in _asked(pipeline, run)]
    stages = ("probe", "read") if _is_certain(pipeline) else ("probe",)
    readers = [(run, spec) for run, spec in models if run.stage.name in stages and isinstance(spec, ReaderSettings)]
    if not readers or any(generator_identity(spec) not in kept_models for _, spec in models):
        return False
    return all(_kept_share(pipeline, run, spec) == 1 for run, spec in readers)


def _is_needed(pipeline: Pipeline, run: StageRun, spec: _Model) -> bool:
    """Whether it is certain that a reply is not kept. Of a judge it never is: its questions follow from answers.

    Before the hints are ranked, a question may still be left out, so one reply that is kept leaves it open; so does
    ``labels.partial``.
    """
    if not isinstance(spec, ReaderSettings) or run.reader != spec.name:
        return False
    share = _kept_share(pipeline, run, spec)
    return share < 1 if _is_certain(pipeline) else share == 0


def _kept_share(pipeline: Pipeline, run: StageRun, spec: ReaderSettings) -> float:
    """Return the share of the replies to a reader's probe, or its reading of sampled questions, that are kept."""
    if (cache := pipeline.models.cache) is None:
        return 0.0
    questions, _ = planned_questions(pipeline)
    reads = run.stage.name == "read"
    if reads:
        questions = questions[:: len(questions) // _SAMPLE + 1]
    reader = language_reader(spec, pipeline.settings)
    repetitions = 1 if reads else pipeline.settings.probe.repetitions
    needed = cached = 0
    for question in questions:
        paths = permutations(len(question.hints)) if reads else [()]
        needed += len(paths) * repetitions
        cached += cached_replies(reader, question, paths, repetitions, cache)
    return cached / needed if needed else 1.0

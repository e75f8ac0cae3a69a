"""From sources to labels: build a workspace, and before that look at its sources and costs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from quit.common.files import replacing, writing
from quit.engine.request import GIVEN, OPTIONS, Request
from quit.engine.request import as_built as requested_build
from quit.engine.workspace import Workspace
from quit.errors import QuitError, SettingsError
from quit.library.arguments import Overrides, Runner, Sources, WriteFile, named_source, override_texts, source_texts
from quit.library.progress import BuildConsole, working
from quit.library.tables import Tables
from quit.models.factory import Models
from quit.models.user_classes import CAUSE, register_models
from quit.retrieval.given import run_records
from quit.settings import load, without
from quit.sources import has_passages, parse_source

if TYPE_CHECKING:
    from quit.library.checking import SourceCheck
    from quit.operations.plan import Plan


def build(
    workspace: str | Path,
    sources: Sources | None = None,
    profile: str | Path | None = None,
    settings: Overrides | None = None,
    *,
    models: Mapping[str, object] | None = None,
    questions: int | None = None,
    shards: int | None = None,
    runner: Runner | None = None,
    add: bool = False,
    replace: bool = False,
    fresh_replies: bool = False,
    progress: bool = True,
) -> Tables:
    """Build a workspace: run every stage that is not up to date, from sources to labels.

    Args:
        workspace: Folder; it is created where there is none.
        sources: ``"starter"``, a file, ``"KIND:PATH"``, or a list of these; records as a list of dictionaries, a data
            frame (pandas, polars, Arrow) or a ``datasets.Dataset`` with the columns id, question, answers and hints,
            and candidates (plausible wrong answers) if there are any. Records are kept in the workspace's folder
            ``sources`` under a name that follows from their content. None: the sources of the last build.
        profile: Name of a profile, or the path of a TOML file; that of the last build, else ``embedded``.
        settings: Over the profile, as ``{"judge.threshold": 0.6}``; those of the last build if not given.
        models: Objects by name: with ``answer(prompts)`` a reader, which returns a string per :class:`quit.Prompt`;
            with ``verdicts(items)`` the judge, which returns True, False or None (unreadable) per
            :class:`quit.JudgeItem`. They work with the runner ``threads`` only.
        questions: Only the first so many questions; 0 for all, whatever the profile says.
        shards: Parts per table; the result is the same.
        runner: ``threads`` or ``ray``; the result is the same.
        add: Keep the sources of the last build before these.
        replace: Let questions leave that people reviewed, or that a release or replies of language models rest on.
        fresh_replies: Delete the kept replies of this build's language models and ask again.
        progress: Show how far it is: a bar in a terminal or notebook, elsewhere a line per stage.

    Returns:
        The tables of the workspace.

    Raises:
        InputError: A source cannot be read, or nothing is left of it.
        SettingsError: A profile or setting is wrong.
        ServerError: A model's server does not answer; the same call resumes.
        WorkspaceError: The folder holds something else, another run holds it, or reviewed questions would leave.
    """
    from quit.library import jobs

    options = {"shards": shards, "runner": runner, "questions": questions}
    opened = Workspace(Path(workspace).absolute())
    before = as_built(opened, profile, settings, options, files=("-p", "--set"))
    model_settings = register_models(models or {}, before.profile, before.overrides)

    with BuildConsole(not progress):
        names = [] if sources is None else source_texts(sources, keep_in(opened))
        request = as_built(opened, profile, settings, options, names, add=add)
        texts = [*without(request.overrides, model_settings), *model_settings]
        steps: dict[str, Any] = {"add": add, "replace": replace, "fresh_replies": fresh_replies}
        try:
            jobs.build(opened, names, request.profile, texts, **steps)
        except QuitError as error:
            # Where a shard found the fault tells a caller nothing; where an own model raised it does.
            raise error.with_traceback(None) from error.__cause__ if CAUSE in str(error) else None
        except KeyboardInterrupt:
            raise KeyboardInterrupt("What is done stays done; the same call resumes.") from None
    return Tables(opened)


def source_names(
    workspace: Workspace,
    sources: Sequence[str],
    request: Callable[..., Request],
    corpus: Path | None = None,
    questions: Path | None = None,
    top: int | None = None,
    qrels: Path | None = None,
) -> list[str]:
    """Return sources as ``KIND:PATH``: of ``run:FILE``, the file of its records that the workspace keeps.

    ``request``: the build's, by :func:`as_built`: a mistake in its settings shows before a record is kept. ``corpus``,
    ``questions``, ``top`` (20) and ``qrels``: as of :func:`quit.retrieval.given.run_records`. Raises ``SettingsError``
    for a run beside other sources or without the first two, and for these without a run.
    """
    names = [*map(named_source, sources)]
    if not any(name.startswith("run:") for name in names):
        if corpus or questions or top or qrels:
            raise SettingsError("--corpus, --questions-from, --top and --qrels go with --source run:FILE.")
        return names
    if len(names) > 1 or corpus is None or questions is None:
        raise SettingsError("A run is the only source of a build; it needs --corpus and --questions-from.")
    records = run_records(Path(names[0].removeprefix("run:")), corpus, questions, top or 20, qrels)
    _ = request(files=("-p", "--set")).settings
    return source_texts(records, keep_in(workspace))


def keep_in(workspace: Workspace) -> WriteFile:
    """Return what writes records to a workspace's folder ``sources``; it is created where there is none."""

    def keep(name: str, data: bytes) -> Path:
        Workspace.create(workspace)
        path = workspace.path / "sources" / name
        with writing(path), replacing(path) as temporary:
            temporary.write_bytes(data)
        return path

    return keep


@contextmanager
def temporary_sources(sources: Sources, cached: Path | None = None) -> Iterator[list[str]]:
    """Return what :func:`source_texts` does, with records in a folder that is removed afterwards, unless the folder
    ``cached`` has them."""
    with TemporaryDirectory(prefix="quit-") as folder:

        def put(name: str, data: bytes) -> Path:
            if cached and (cached / name).is_file():
                return cached / name
            path = Path(folder, name)
            path.write_bytes(data)
            return path

        yield source_texts(sources, put)


def plan(
    workspace: str | Path,
    sources: Sources | None = None,
    profile: str | Path | None = None,
    settings: Overrides | None = None,
    *,
    questions: int | None = None,
    throughput: float | None = None,
    progress: bool = True,
) -> Plan:
    """Count what a build will ask of language models, before anything is spent.

    Args:
        workspace: Folder, which need not exist yet.
        sources: As :func:`build` takes them.
        profile: As :func:`build` takes it.
        settings: As :func:`build` takes them.
        questions: Only the first so many questions; 0 for all, whatever the profile says.
        throughput: Replies per second.
        progress: Show how far it is.

    Returns:
        ``questions``, ``passages``, ``lines`` (requests, tokens, seconds and cost per model and role), ``total``,
        ``notes``, and ``remembered``: profile and settings of the last
        build that are used again.

    Raises:
        InputError: A source cannot be read.
        SettingsError: A profile or setting is wrong.
    """
    from quit.engine.pipeline import Pipeline
    from quit.engine.planning import as_looked_at, checked_build
    from quit.operations.plan import plan as plan_costs

    if throughput is not None and throughput <= 0:
        raise SettingsError(f"throughput is {throughput}: give a number above 0.")
    new = [*override_texts(settings), f"collect.questions={questions}"]
    opened = Workspace(workspace)
    source_context = nullcontext(()) if sources is None else temporary_sources(sources, opened.path / "sources")
    with source_context as source_names, working("plan", not progress):
        request = as_built(opened, profile, settings, {"questions": questions}, source_names)
        effective, refs = checked_build(*request)
        pipeline = Pipeline(opened, as_looked_at(opened, effective), refs)
        costs = plan_costs(pipeline, throughput=throughput)
    remembered = [text for text in request.overrides if text not in (*new, GIVEN)]
    if opened.build and not profile:
        remembered.insert(0, f"profile={request.profile}")
    return dataclasses.replace(costs, remembered=tuple(remembered))


def check(
    sources: Sources,
    profile: str | Path = "embedded",
    settings: Overrides | None = None,
    *,
    models: bool = True,
    progress: bool = True,
) -> SourceCheck:
    """Read sources and look for leaks as a build would. Writes nothing.

    Args:
        sources: As :func:`build` takes them.
        profile: Name of a profile, or the path of a TOML file.
        settings: Over the profile, as :func:`build` takes them.
        models: Look for leaks with the profile's models too, not by rules alone.
        progress: Show how far it is.

    Returns:
        A dictionary of the type ``quit.SourceCheck``: counts, ``faults`` (what would be left out) and ``notes`` (what
        looks odd).

    Raises:
        InputError: A source cannot be read.
        SettingsError: A profile or setting is wrong.
    """
    from quit.library.checking import examine

    with temporary_sources(sources) as source_names:
        refs = [*dict.fromkeys(map(parse_source, source_names))]
        given = [GIVEN] if any(map(has_passages, refs)) else []
        effective = load(profile, [*override_texts(settings), *given]).settings
        with working("check", not progress):
            return examine(refs, effective, Models(effective) if models else None)


def as_built(
    workspace: Workspace,
    profile: str | Path | None,
    settings: Overrides | None,
    options: Mapping[str, Any],
    sources: Sequence[str] = (),
    **more: Any,
) -> Request:
    """Return what :func:`quit.engine.request.as_built` does, of settings as Python and the command line take them.

    ``options``: those of :data:`quit.engine.request.OPTIONS`. None keeps that of the last build. ``more``: its
    ``add`` and ``files``.
    """
    if (options.get("questions") or 0) < 0:
        raise SettingsError(f"questions is {options['questions']}: give a number from 1, or 0 for all.")
    texts = None if settings is None else override_texts(settings)
    new = [f"{OPTIONS[name]}={value}" for name, value in options.items() if value is not None]
    return requested_build(workspace, sources, str(profile) if profile else None, texts, new, **more)

"""Plan a job on a workspace: once, and while the workspace is held. Builds, reviews and releases take the lock here and
nowhere else."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from quit.common.arithmetic import ARITHMETIC, arithmetic
from quit.common.progress import note
from quit.engine.last_build import Build
from quit.engine.pipeline import Pipeline
from quit.engine.plan import check_labelers
from quit.engine.request import as_built, settings_of
from quit.engine.workspace import Workspace
from quit.errors import InputError, SettingsError, WorkspaceError
from quit.models.user_classes import as_recorded
from quit.settings import Settings, flatten, load, of_section
from quit.sources import SOURCES, SourceRef, parse_source
from quit.stages.order import STAGES
from quit.stages.split import read_pins
from quit.text.words import shell_word

_COMMIT = re.compile(r"[0-9a-f]{40}")
_NAMED = ("readers", "servers")
_UNSET = "not set"


@contextmanager
def locked_build(
    workspace: str | Path | Workspace,
    sources: Sequence[str],
    profile: str | None,
    overrides: Sequence[str] | None,
    *,
    add: bool = False,
    replace: bool = False,
    keep_labels: bool = False,
) -> Iterator[Pipeline]:
    """Hold a workspace and plan its build; parts that are damaged are removed first. The workspace is created where
    there is none.

    ``sources``, ``profile``, ``overrides``, ``add``: as of :func:`quit.engine.request.as_built`. ``replace``: questions
    that people reviewed may leave the workspace. ``keep_labels``: settings that give other labels than those of the
    last build are refused.

    Raises ``InputError`` for a source that cannot be read, ``SettingsError``, and ``WorkspaceError`` where another run
    holds it, or for settings that are refused.
    """
    target = workspace if isinstance(workspace, Workspace) else Workspace(workspace)
    settings, _ = checked_build(*as_built(target, sources, profile, overrides, add=add))
    Workspace.create(target)
    with target.lock(settings.run.lock_seconds, note):
        request = as_built(target, sources, profile, overrides, add=add)  # the run that held it may have changed them
        settings, refs = checked_build(*request)
        pipeline = Pipeline(target, settings, refs, requested=request, replace=replace)
        if keep_labels:
            _check_labels_stay(pipeline)
        for line in pipeline.discard_damaged():
            note(line, loud=True)
        if others := _other_arithmetics(target):
            note(
                f"The tables of {workspace} were computed on another kind of machine ({', '.join(others)}; here: "
                f"{arithmetic()}). Stages that depend on it run again.",
                loud=True,
            )
        yield pipeline


def _check_labels_stay(pipeline: Pipeline) -> None:
    """Raise ``WorkspaceError`` where there are labels, and the settings of the last build give others than these."""
    last = pipeline.workspace.build
    if last is None or "label" not in pipeline.workspace.state:
        return
    settings = settings_of(pipeline.workspace)
    before = Pipeline(pipeline.workspace, settings, pipeline.sources)
    before.source_checksums = pipeline.source_checksums
    if before.fingerprints["label"] == pipeline.fingerprints["label"]:
        return
    old, new = _values(settings), _values(pipeline.settings)
    both = {_entry(key) for key in old} & {_entry(key) for key in new}
    differences = [
        f"{key} was {old.get(key, _UNSET)}, is {new.get(key, _UNSET)}"
        for key in {**old, **new}
        if _entry(key) in both and old.get(key, _UNSET) != new.get(key, _UNSET)
    ]
    raise WorkspaceError(
        f"The labels of {pipeline.workspace} rest on other settings than this run names, which would replace them: "
        f"{'; '.join(differences)}. Nothing was changed. Name neither profile nor settings, so that they are those of "
        "the last build, or let labels be replaced (replace = true)."
    )


def _entry(key: str) -> tuple[str, ...]:
    """Return the section of a dotted key; of readers and servers, the one of these too."""
    section, *path = key.split(".")
    return (section, path[0]) if section in _NAMED else (section,)


def _values(settings: Settings) -> dict[str, Any]:
    """Return dotted keys and values of the settings that tables depend on; readers and servers by their
    names."""
    sections = {section.partition(".")[0] for stage in STAGES for section in stage.sections}
    values = settings.model_dump(mode="json", include={*sections, "models", "judge"})
    for section in _NAMED:
        entries = {entry.name: entry.model_dump(mode="json") for entry in getattr(settings, section)}
        values[section] = {"names": [*entries], **entries}
    return dict(flatten(values))


def _other_arithmetics(workspace: Workspace) -> list[str]:
    """Return the names of the arithmetics by which current tables were computed, except this machine's."""
    models = " ".join(model for _, manifest in workspace.current().values() for model in manifest["models"])
    names = re.findall(rf"/({re.escape(ARITHMETIC.partition('-')[0])}-[\w-]+)", models)
    return sorted({*names} - {arithmetic()})


@contextmanager
def locked_last_build(
    workspace: str | Path | Workspace, review: Sequence[str] = (), *, runs: bool = False
) -> Iterator[Pipeline]:
    """Hold a workspace and plan its last build. ``runs``: as of :func:`last_build`.

    ``review``: overrides of ``review.*`` settings, remembered from now on. Raises what :func:`last_build` raises,
    ``SettingsError`` for an override of anything else, and ``WorkspaceError`` where another run holds it.
    """
    target = Workspace.open(workspace)
    changes = of_section("review", review)
    with target.lock(settings_of(target).run.lock_seconds, note):
        pipeline = last_build(target, changes, runs=runs)
        sources, profile, overrides = as_built(target, changes=changes)
        target.set_build({"profile": profile, "overrides": overrides, "sources": sources})
        yield pipeline


def checked_build(sources: Sequence[str], profile: str, overrides: Sequence[str]) -> tuple[Settings, list[SourceRef]]:
    """Return settings and sources of what can be built, before a workspace is created.

    Raises ``SettingsError`` and ``InputError`` for what cannot.
    """
    settings = load(profile, overrides).settings
    refs = [parse_source(text) for text in sources]
    if not refs:
        raise InputError(
            "A build needs at least one source (--source, sources=): starter (the bundled collection), FILE.csv, or "
            f"KIND:PATH with one of {', '.join(SOURCES)}."
        )
    check_buildable(settings)
    read_pins(settings.split.pinned)
    return settings, refs


def check_buildable(settings: Settings) -> None:
    """Raise ``SettingsError`` for settings that can label nothing, or leave open what only the user can give."""
    check_labelers(settings)
    max_cost, max_tokens = settings.run.max_cost, settings.run.max_tokens
    for model in settings.replying_models if (max_cost, max_tokens) != (None, None) else ():
        if model.kind == "server" and model.missing_prices and max_cost is not None:
            raise SettingsError(
                f"run.max_cost needs all prices of {model.name}: set its {model.missing_prices} in the profile (0 "
                "where nobody is charged)."
            )
        if model.kind == "server" and (fields := model.extra.keys() & {"max_tokens", "max_completion_tokens", "n"}):
            raise SettingsError(
                f"A cap has to know the longest reply of {model.name}: take {' and '.join(sorted(fields))} out of its "
                "extra. Room for replies: labels.max_new_tokens, judge.max_new_tokens, thinking_tokens."
            )
    models = settings.models
    from_hub = models.equivalence == "bem" and not Path(models.bem_checkpoint).expanduser().is_dir()
    if settings.leakage.method == "bem" and from_hub and not _COMMIT.fullmatch(models.bem_revision):
        raise SettingsError(
            f"The leakage filter by BEM needs a commit of {models.bem_checkpoint}, since a branch may move to other "
            f"weights (models.bem_revision is {models.bem_revision!r}). Copy its 40 digits from the hub ('Files', "
            "'History'): models.bem_revision=COMMIT; or set models.bem_checkpoint to a local folder."
        )
    if settings.difficulty.counts == "containment" and not settings.difficulty.corpus:
        raise SettingsError(
            "difficulty.corpus is not set, and difficulty.counts = 'containment' needs one: hints are chosen not to "
            "contain the answer. Set difficulty.corpus=FILE (JSONL of {id, text}, such as Wikipedia's passages), "
            "or difficulty.counts=nearness."
        )


def last_build(workspace: Workspace, changes: Sequence[str] = (), *, runs: bool = False) -> Pipeline:
    """Return the plan of a workspace's last build, with ``changes`` over its settings, without holding it; ``runs``: to
    run stages of it, not only to look at it (:func:`as_looked_at`).

    Raises ``InputError`` when nothing was built, or a file that it names is gone or cannot be read.
    """
    last_build_options(workspace)
    request = as_built(workspace, changes=changes)
    settings, refs = request.settings, [parse_source(text) for text in request.sources]
    if not runs:
        settings = as_looked_at(workspace, settings)
    pipeline = Pipeline(workspace, settings, refs, requested=request)
    _ = pipeline.source_checksums  # reads the sources, so that a missing one shows now
    return pipeline


def as_looked_at(workspace: Workspace, settings: Settings) -> Settings:
    """Return settings with the identities of users' classes from the current tables, and say which are not compared
    with these."""
    current = workspace.current() if workspace.exists else {}
    models_of_run = {run: manifest.get("models", ()) for run, (_, manifest) in current.items()}
    settings, names = as_recorded(settings, models_of_run)
    if names:
        note(
            f"Not compared: {', '.join(names)}. To look at a workspace imports none of its classes: what tables say "
            "of them counts. quit build compares.",
            loud=True,
        )
    return settings


def last_build_options(workspace: Workspace) -> Build:
    """Return profile, overrides and sources of the last build. Raises ``InputError`` where nothing was built."""
    if workspace.build is None:
        raise InputError(
            f"{workspace} has not been built yet. Run: quit build -w {shell_word(workspace)} --source KIND:PATH"
        )
    return workspace.build

"""From a finished build to what an export is made from."""

from __future__ import annotations

import shlex
from pathlib import Path

from quit.dataset.dataset import Dataset
from quit.dataset.description import Origin, Provenance, Source
from quit.dataset.files import TableFiles, current_files
from quit.dataset.release import ReaderInfo
from quit.engine.pipeline import Pipeline
from quit.engine.usage import origins
from quit.engine.workspace import Workspace
from quit.errors import WorkspaceError
from quit.review.audit import audit_figures
from quit.review.people import Verification, verification
from quit.settings import without
from quit.sources import SOURCES
from quit.stages.identities import reader_identity
from quit.stages.order import STAGES
from quit.text.words import shell_word
from quit.version import __version__


def workspace_tables(pipeline: Pipeline) -> TableFiles:
    """Return the current tables of a finished build, labels with applied reviews. Raises :class:`WorkspaceError` as
    :func:`check_finished` does."""
    check_finished(pipeline)
    return current_files(pipeline.workspace, [reader.name for reader in pipeline.settings.readers])


def dataset_of(pipeline: Pipeline) -> Dataset:
    """Return what an export of a finished build is made from. Raises as :func:`workspace_tables` does."""
    files = workspace_tables(pipeline)
    people, replies = verification_of(pipeline), origins(pipeline.workspace.path)
    provenance: Provenance = {**provenance_of(pipeline)}
    if people:
        provenance["verification"] = people
    if replies:
        provenance["replies"] = replies
    fill_in = filling_in(pipeline.workspace)
    return Dataset.read(files, readers_of(pipeline), provenance=provenance, fill_in=fill_in)


def filling_in(workspace: Workspace) -> str:
    """Return the command that has every labeler asked about every passage. Replies that are in the cache of replies are
    not asked for again."""
    overrides = workspace.build["overrides"] if workspace.build else []
    every = "labels.partial=off"
    settings = "".join(f" --set {shlex.quote(text)}" for text in [*without(overrides, [every]), every])
    return f"quit build -w {shell_word(workspace)}{settings}"


def verification_of(pipeline: Pipeline) -> Verification | None:
    """Return who verified the labels (:func:`quit.review.people.verification`) and what their ``audit`` says, if there
    is one; None where the labels rest on no review.

    Raises ``InputError`` for a bad file of people or of control questions.
    """
    live, review = pipeline.reviews.fitting_rows, pipeline.settings.review
    return {**verification(live, review), **audit_figures(pipeline.workspace, review, live)} if len(live) else None


def check_finished(pipeline: Pipeline) -> None:
    """Raise :class:`WorkspaceError` unless every stage is complete and belongs to these sources and settings."""
    workspace = pipeline.workspace
    for run in pipeline.runs:
        if not pipeline.is_current(run):
            pipeline.check_not_empty(run)
            raise WorkspaceError(
                f"The stage {run.key!r} of {workspace} is not finished. Run: quit build -w {shell_word(workspace)}"
            )


def readers_of(pipeline: Pipeline) -> tuple[ReaderInfo, ...]:
    """Return the readers in profile order."""
    return tuple(
        ReaderInfo(reader.name, reader.role, reader_identity(reader, pipeline.settings), reader.kind)
        for reader in pipeline.settings.readers
    )


_CONSTRUCTION = {section.partition(".")[0] for stage in STAGES for section in stage.sections} | {
    *("models", "readers", "review", "release"),
}
"""Settings on which a dataset depends: not how and where it was built, nor what systems are run on it."""


def without_folder(name: str) -> str:
    """Return a hub name as it is, and of a path (``/...``, ``~/...``, ``./...``, ``../...``, a prompt's ``.txt``) its
    last part only."""
    return Path(name).name if name.startswith(("/", "~", "./", "../")) or name.endswith(".txt") else name


def provenance_of(pipeline: Pipeline) -> Origin:
    """Return settings, fingerprints, sources and program version of a finished build: nothing of machines or people."""
    facts = pipeline.workspace.current()["collect"].manifest["sources"]
    sources: list[Source] = [
        {"name": source.name, "file": fact["file"], "checksum": fact["sha256"], "licence": source.licence,
         "citation": source.citation}
        for fact, source in ((fact, SOURCES[fact["kind"]]) for fact in facts)
    ]  # fmt: skip
    settings = {
        name: value for name, value in pipeline.settings.model_dump(mode="json").items() if name in _CONSTRUCTION
    }
    for section, key in (("split", "pinned"), ("difficulty", "corpus")):
        if settings[section][key]:
            settings[section][key] = Path(settings[section][key]).name
    settings["models"]["bem_checkpoint"] = without_folder(settings["models"]["bem_checkpoint"])
    for spec in (*settings["readers"], settings["judge"]):
        del spec["server"]
        for key in ("model", "prompt", "probe_prompt"):
            if spec.get(key):
                spec[key] = without_folder(spec[key])
    # Of a review, only its rules matter to who reads a release; names of people and servers stay at home.
    settings["review"] = {
        name: settings["review"][name] for name in ("splits", "adjudication", "minimum", "removing_flags")
    }
    return {
        "settings": settings,
        "fingerprints": dict(pipeline.workspace.state),
        "sources": sources,
        "program_version": __version__,
    }

"""A finished build or a release as what gates check."""

from __future__ import annotations

from collections.abc import Sequence

from quit.common.progress import note
from quit.dataset.release import Release
from quit.dataset.workspace import readers_of, workspace_tables
from quit.engine.pipeline import Pipeline
from quit.engine.planning import last_build
from quit.engine.workspace import Workspace
from quit.release.gates import Subject, with_release_settings
from quit.settings import Settings, parse
from quit.text.words import counted


def subject_of(pipeline: Pipeline, settings: Settings | None = None) -> Subject:
    """Return a finished build as what gates check, and say how many annotations are set aside. ``settings``: others
    than the build's, only for the gates.

    Raises :class:`WorkspaceError` when a stage is not finished.
    """
    tables = workspace_tables(pipeline)
    if count := set_aside_count(pipeline):
        what = counted(count, "annotation is", "annotations are")
        note(f"{what} set aside: the question had another text or other gold answers. See: quit review status", True)
    return Subject(tables, readers_of(pipeline), settings or pipeline.settings)


def subject_of_release(release: Release, overrides: Sequence[str] = ()) -> Subject:
    """Return a release as what gates check; ``overrides``: of the section ``release``."""
    content = release.content["settings"]
    parsed = parse(
        {
            "passages": content["passages"],
            "leakage": content.get("leakage", {}),
            "difficulty": {**content.get("difficulty", {}), "corpus": ""},
            "split": {**content["split"], "pinned": None},
            "review": {"splits": content["review"]["splits"]},
            "release": content["release"],
        }
    )
    return Subject(release.files, release.readers, with_release_settings(parsed, overrides))


def set_aside_count(pipeline: Pipeline) -> int:
    """Return how many annotations no longer fit their question."""
    reviews = pipeline.reviews
    live, fitting = (rows["review_id"].unique() for rows in (reviews.rows, reviews.fitting_rows))
    return len(live) - len(fitting)


def subject_from(source: Release | Workspace) -> Subject:
    """Return a release or a finished workspace as what gates check. Raises as ``last_build`` does."""
    return subject_of_release(source) if isinstance(source, Release) else subject_of(last_build(source))

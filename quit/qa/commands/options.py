"""Options that commands of QA systems share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quit.commands.options import Json, NamedProfile, Profile, Quiet, Workspace, WorkspaceOrRelease  # noqa: F401  # what they share with all

if TYPE_CHECKING:
    from quit.qa.settings import QaSettings


def _settings_keys(incomplete: str) -> list[str]:
    from quit.qa.settings import QaSettings
    from quit.settings import flatten

    return [f"{key}=" for key, _ in flatten(QaSettings().model_dump()) if key.startswith(incomplete)]


Corpus = Annotated[Path, typer.Option("-c", help="Folder of a corpus (`quit corpus build`).")]
Index = Annotated[
    list[Path] | None,
    typer.Option("-i", help="Folder of an index (`quit index build`); several are fused. None: BM25 in memory."),
]
QuestionSource = Annotated[
    str | None, typer.Option("-s", help="Only questions of this source: musique, 2wiki, quit, beir.")
]
QuestionKind = Annotated[str | None, typer.Option(help="Only questions of this type of the source: 2hop, comparison.")]
QuestionLimit = Annotated[int | None, typer.Option(min=1, help="Only the first so many questions.")]
Set = Annotated[
    list[str] | None, typer.Option(help="Override a setting: labels.max_new_tokens=16.", autocompletion=_settings_keys)
]


def load_settings(profile: str, overrides: Sequence[str] | None) -> QaSettings:
    """Return the settings of a profile with ``--set`` applied. Raises as :func:`quit.qa.settings.load` does."""
    from quit.qa.settings import load

    return load(profile, overrides or ()).settings


def settings_for(place: Path, profile: str | None, overrides: Sequence[str] | None) -> QaSettings:
    """Return the settings for work on a release or a workspace: of a workspace, those of its last build where the
    caller names no others (:func:`quit.engine.request.as_built`)."""
    from quit.engine.request import as_built
    from quit.engine.workspace import Workspace as Folder

    request = as_built(Folder(place), (), profile, None, overrides or (), files=["-p"])
    return load_settings(request.profile, request.overrides)

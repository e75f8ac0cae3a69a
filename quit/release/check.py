"""What the gates say of a release or of a finished build, with what venues ask about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from quit.dataset.description import Provenance
from quit.dataset.release import verify
from quit.dataset.workspace import provenance_of
from quit.engine.planning import last_build
from quit.engine.workspace import Workspace
from quit.release.gates import GateResult, check, tell_paraphrases, with_release_settings
from quit.release.subjects import subject_of, subject_of_release
from quit.settings.card import Card


@dataclass(frozen=True, eq=False)
class ReleaseCheck:
    """What every gate says of a release or build, in order. ``card``: what the publisher said."""

    results: Sequence[GateResult]
    provenance: Provenance
    card: Card


def check_release(path: Path, overrides: Sequence[str], waivers: Mapping[str, str]) -> ReleaseCheck:
    """Return what the gates say of a release; a waiver that it was frozen with holds unless ``waivers`` has another.

    ``overrides``: of the section ``release``. Raises ``InputError`` where the release is not what was frozen, and
    ``SettingsError`` for other overrides and for waivers as ``quit.release.gates.check`` does.
    """
    release = verify(path)
    frozen = {gate["gate"]: gate["waiver"] for gate in release.facts["gates"] if gate["waiver"]}
    results = check(subject_of_release(release, overrides), {**frozen, **waivers})
    return ReleaseCheck(results, release.provenance, release.card)


def check_workspace(workspace: Workspace, overrides: Sequence[str], waivers: Mapping[str, str]) -> ReleaseCheck:
    """Return what the gates say of a finished build, and note questions of train that seem to ask the same as others.

    Raises ``WorkspaceError`` where a stage is not finished, and as :func:`check_release` does.
    """
    pipeline = last_build(workspace)
    subject = subject_of(pipeline, with_release_settings(pipeline.settings, overrides))
    results = check(subject, waivers)
    tell_paraphrases(subject, pipeline.models.encoder)
    return ReleaseCheck(results, {**provenance_of(pipeline)}, pipeline.settings.card)

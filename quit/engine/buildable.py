"""Settings that a build refuses before anything runs."""

from __future__ import annotations

import re
from pathlib import Path

from quit.errors import SettingsError
from quit.settings import Settings
from quit.stages.selection import MAX_HINTS

_COMMIT = re.compile(r"[0-9a-f]{40}")


def check_labelers(settings: Settings) -> None:
    """Raise ``SettingsError`` for settings that can label nothing."""
    if not settings.labelers:
        raise SettingsError(
            "The profile names no reader with role 'labeler'; labels need at least one. Profiles do not inherit: "
            "start from a complete copy, such as: quit settings --profile embedded --toml > mine.toml"
        )
    if settings.labels.economy == "estimated" and settings.convergence.hints > MAX_HINTS:
        raise SettingsError(
            f"labels.economy = 'estimated' takes up to {MAX_HINTS} hints, not {settings.convergence.hints}: the "
            "passages of a question are compared in pairs. Set convergence.hints lower, or labels.economy=exact."
        )


def check_buildable(settings: Settings) -> None:
    """Raise ``SettingsError`` for settings that can label nothing, or leave open what only the user can give."""
    check_labelers(settings)
    models = settings.models
    from_hub = models.equivalence == "bem" and not Path(models.bem_checkpoint).expanduser().is_dir()
    if settings.leakage.method == "bem" and from_hub and not _COMMIT.fullmatch(models.bem_revision):
        raise SettingsError(
            f"The leakage filter by BEM needs a commit of {models.bem_checkpoint}, since a branch may move to other "
            f"weights (models.bem_revision is {models.bem_revision!r}). Copy its 40 digits from the hub ('Files', "
            "'History'): --set models.bem_revision=COMMIT; or set models.bem_checkpoint to a local folder."
        )
    if settings.difficulty.counts == "containment" and not settings.difficulty.corpus:
        raise SettingsError(
            "difficulty.corpus is not set, and difficulty.counts = 'containment' needs one: hints are chosen not to "
            "contain the answer. Set --set difficulty.corpus=FILE (JSONL of {id, text}, such as Wikipedia's passages), "
            "or --set difficulty.counts=nearness."
        )

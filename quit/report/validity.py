"""The chapter *What the labels rest on*: of each part its figures, and what the page shows of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from quit.dataset.files import current_files
from quit.dataset.release import Release
from quit.engine.workspace import Workspace
from quit.errors import InputError
from quit.release.create import subject_of_release
from quit.release.gates import Subject
from quit.release.view import shown_readers
from quit.release.whatif import Answered, summary
from quit.render.table import Table
from quit.review.audit import audit_pieces
from quit.settings import Settings


def whatif_figures(opened: Workspace | Release, settings: Settings) -> list[dict[str, Any]]:
    """Return what leaving out each labeler, and asking for two, changes (:meth:`Answered.effects`).

    Empty with one labeler, and while labels or answers are not finished.
    """
    readers: Any = shown_readers(opened, settings)
    files = opened.files if isinstance(opened, Release) else current_files(opened)
    names = [f"answers/{reader.name}" for reader in readers if reader.role == "labeler"]
    if len(names) < 2 or not all(files.parts.get(name) for name in ("labels", "valid_answers", *names)):
        return []
    subject = subject_of_release(opened) if isinstance(opened, Release) else Subject(files, tuple(readers), settings)
    try:
        answered = Answered(subject.labelled())
        return answered.effects(answered.standard_rules())
    except InputError:  # a build that stopped has answers or labels of some questions only
        return []


def whatif_block(effects: Sequence[dict[str, Any]]) -> Iterator[str | Table]:
    """Yield the table of these rules."""
    if effects:
        note = (
            "What labels would be without one of the labelers, and with two that must be right. Flip: share of the "
            "passages whose label changes. Questions that lose all have some label 2 now and none then. A range: some "
            "labelers were not asked about some passages (labels.partial)."
        )
        yield replace(summary(effects), note=note)


def audit(facts: dict[str, Any]) -> list[Table | str]:
    """Return what people's verdicts on a random sample of passages say of all passages."""
    return audit_pieces(facts["audit"]) if facts["audit"] else []

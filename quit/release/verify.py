"""Verification of a release row by row, beside that of its files (:func:`quit.dataset.release.verify`)."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from quit.common.progress import note
from quit.dataset.check import faults
from quit.dataset.release import Release, verify
from quit.errors import InputError
from quit.release.subjects import subject_of_release
from quit.text import answers


def verify_tables(path: Path) -> Release:
    """Return the release after :func:`verify` and a look at every row, except for what its waived gates let pass.

    Raises ``InputError`` that names what was changed, and rows that are not what their table's contract says.
    """
    release = verify(path)
    subject = subject_of_release(release)
    waived = {gate["gate"] for gate in release.facts["gates"] if gate["state"] == "waived"}
    own_keys = release.facts.get("answer_keys", answers.VERSION) != answers.VERSION
    if own_keys:
        note(f"Not compared: keys of answers, which the release {path} has by another rule.", loud=True)
    rows = faults(subject.files, subject.readers, subject.settings, own_keys=own_keys)
    unwaived = (str(fault) for fault in rows if fault.gate not in waived)
    if examples := [*islice(unwaived, subject.settings.release.examples)]:
        raise InputError(f"Tables of the release {path} are not what they must be. {'; '.join(examples)}")
    return release

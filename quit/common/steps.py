"""A long job in steps, each on disk before the next: a killed run resumes at its first missing or damaged step.

::

    F/plan.json      what the job depends on: another plan throws the steps away
    F/00003/         the files of a step and their checksums, there whole or not at all
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from quit.common.files import json_bytes, read_json, sync, write_json, writing
from quit.common.folders import aside, put_in_place
from quit.common.manifests import fault, write_manifest
from quit.common.progress import note
from quit.errors import SettingsError

MANIFEST = "files.json"
_OWN = re.compile(r"plan\.json|\d{5}|\..*")


def remove_steps(folder: Path) -> None:
    """Remove the folder of a job that is done, or done again. Raises as :class:`Steps`."""
    if others := [path.name for path in sorted(folder.glob("*")) if not _OWN.fullmatch(path.name)]:
        raise SettingsError(f"{folder} is not of this program (it holds {others[0]}): choose another folder.")
    with writing(folder):
        (folder / "plan.json").unlink(missing_ok=True)  # first: what is left of its steps counts no more
    shutil.rmtree(folder, ignore_errors=True)


class Steps:
    """The steps of one job in ``folder``. Raises :class:`quit.errors.WorkspaceError` where the disk refuses,
    :class:`quit.errors.SettingsError` for a folder with anything else."""

    def __init__(self, folder: Path, plan: Mapping[str, Any]) -> None:
        self._folder = folder
        if read_json(folder / "plan.json") != json.loads(json_bytes(plan)):
            remove_steps(folder)
            write_json(folder / "plan.json", plan)

    def __getitem__(self, number: int) -> Path:
        """The folder of a step, which may be missing."""
        return self._folder / f"{number:05d}"

    def finished(self) -> int:
        """Return how many steps are there before the first one that is missing or not as it was written."""
        number = 0
        while (problem := fault(self[number] / MANIFEST)) is None:
            number += 1
        if self[number].is_dir():
            note(f"{problem}: this step is done again")
        return number

    @contextmanager
    def adding(self, number: int) -> Iterator[Path]:
        """Give a folder to write the files of a step to; on leaving, flush these and move it into place."""
        target = self[number]
        with writing(target), aside(target) as folder:
            yield folder
            files = list(folder.iterdir())
            for path in files:
                sync(path)
            write_manifest(folder / MANIFEST, {}, files)
            put_in_place(folder, target)

"""The append-only table ``reviews`` of a workspace, and the small files of its review project.

::

    W/reviews/part-00003.parquet   one part per pull with news
    W/reviews/project.json         key of the review project, where it was last seen, and the folder W
    W/reviews/sync.json            how far the last pull got
    W/reviews/applied.json         which parts the label update rests on
    W/reviews/audit.json           which passages were drawn for the audit, and of how many

Losing every JSON file here loses no review that was pulled: the next pull finds the project by its key in the reviews,
and reads all annotations again. Before the first pull, only the project's description on the server has the key.
Without ``audit.json`` the next push draws another audit.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NotRequired

import pyarrow as pa
from typing_extensions import TypedDict

from quit import contracts
from quit.common.files import read_json
from quit.common.rows import Row
from quit.common.state_files import StateFile
from quit.engine.logs import Log, applied_reviews
from quit.engine.parts import log_number
from quit.engine.workspace import Workspace
from quit.errors import WorkspaceError


class ReviewProject(TypedDict):
    """The project of a review, and where it was last seen. ``folder``: the workspace whose it is; ``tasks``: the
    questions that have one."""

    key: str
    url: NotRequired[str]
    id: NotRequired[int | None]
    folder: NotRequired[str]
    tasks: NotRequired[list[str]]


class PullState(TypedDict, total=False):
    """How far the last pull of a ``project`` (key and number) got. ``seen``: task -> when it was last changed, and its
    annotations."""

    project: list[str | int]
    seen: dict[str, list[str]]
    tasks: int
    done: int
    problems: list[str]


class AuditPassage(TypedDict):
    """A passage that was drawn for an audit. ``split``: its place in ``SPLITS``; ``whole``: every labeler was asked;
    ``answers``: whether the judge accepts each."""

    question_id: str
    permutation: str
    label: int
    hints: int
    split: int
    whole: bool
    answers: dict[str, bool]


class AuditDraw(TypedDict):
    """An audit of a ``size``. ``versions``: of labels and splits; ``numbers``: of passages by split, judge's label,
    number of hints and state."""

    size: int
    versions: dict[str, str | None]
    labelers: list[str]
    numbers: list[list[list[list[int]]]]
    sample: list[AuditPassage]


_PROJECT: StateFile[ReviewProject] = StateFile(
    "project.json",
    ReviewProject,
    "Take it from a copy of the workspace. Or, if people's work was pulled from the project, delete it: its key is in "
    "`reviews`. "
    'Or write {"key": "..."} into it: the key from [quit-review ...] in the project\'s description on the server.',
)
_SYNC: StateFile[PullState] = StateFile("sync.json", PullState, "Delete it; the next pull reads everything again.")
AUDIT: StateFile[AuditDraw] = StateFile("audit.json", AuditDraw, "Delete it; the next push draws the audit again.")


class ReviewStore:
    """The reviews of one workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self._log = Log(workspace, "reviews")
        self.folder = self._log.folder

    # The table

    @property
    def parts(self) -> list[str]:
        """Names of the table's parts, oldest first."""
        return [path.name for path in self._log.files]

    def read(self, parts: Sequence[str] | None = None) -> pa.Table:
        """Return the rows of all parts, or of those named. Raises :class:`WorkspaceError` for a bad part."""
        return self._log.read(None if parts is None else [self.folder / name for name in parts])

    def next_sync(self) -> int:
        """Return the number of the next pull that brings something, from 1."""
        return log_number(self._log.next_part())

    def append(self, rows: Sequence[Row]) -> str | None:
        """Append rows as one new part and return its name (None for no rows). Nothing that exists is touched.

        Raises :class:`WorkspaceError` where another pull wrote the same part meanwhile, or the disk refuses.
        """
        if not rows:
            return None
        target = self._log.next_part()
        part = self._log.add_part(contracts.table("reviews").from_rows(list(rows)))
        if part is None:
            raise WorkspaceError(f"{target} was written by another pull meanwhile. Pull again.")
        return part.name

    # What the label update rests on

    @property
    def applied(self) -> list[str]:
        """Names of the parts that the label update rests on (none: people's verdicts are not applied)."""
        return [path.name for path in applied_reviews(self.workspace)]

    def set_applied(self, parts: Sequence[str]) -> None:
        """Let the label update rest on these parts."""
        if list(parts) != self.applied:
            self.workspace.put_json("reviews/applied.json", {"parts": list(parts)})

    # The project and the last pull

    @property
    def project(self) -> ReviewProject:
        """The project, empty before the first push. Without its file, the key of the newest review and no ``id``."""
        if project := _PROJECT.read(self.folder):
            return project
        if self.parts:
            return {"key": self.read(self.parts[-1:]).column("project")[-1].as_py(), "id": None}
        return {}  # type: ignore[typeddict-item]  # nothing is known of it

    def set_project(self, project: ReviewProject) -> None:
        """Remember the project, and that it is this folder's."""
        project = {**project, "folder": str(self.workspace.path.resolve())}
        if project != self.project:
            self.workspace.put_json("reviews/project.json", project)

    @property
    def original(self) -> Path | None:
        """The folder of which this workspace is a copy, where that has the project still; a moved one is no copy."""
        here, project = self.workspace.path.resolve(), self.project
        former = Path(project.get("folder") or here)
        of_former = read_json(former / "reviews" / "project.json") or {}
        return former if former != here and of_former.get("key") == project.get("key") else None

    @property
    def sync(self) -> PullState:
        """How far the last pull got; empty before the first."""
        return _SYNC.read(self.folder) or {}

    def set_sync(self, state: PullState) -> None:
        """Remember how far a pull got."""
        self.workspace.put_json("reviews/sync.json", state)

"""The small JSON files of a workspace: what they must hold, and one line for people where they do not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, NotRequired

from pydantic import Field, PositiveInt, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from quit.common.manifests import FileState
from quit.errors import WorkspaceError


class Part(FileState):
    """A Parquet part of a table; ``first`` and ``last`` bound its questions."""

    file: str
    rows: int
    first: NotRequired[str | None]
    last: NotRequired[str | None]


class PartedTable(TypedDict):
    """A table of a stage run."""

    rows: int
    parts: list[Part]


class Manifest(TypedDict):
    """A complete stage run: its tables, and what they were made from. ``inputs``: earlier stage run -> hash of its
    tables; ``sources``: of the stage that reads them."""

    tables: dict[str, PartedTable]
    supersedes: NotRequired[list[str]]
    inputs: NotRequired[dict[str, str]]
    models: NotRequired[list[str]]
    settings: NotRequired[dict[str, Any]]
    sources: NotRequired[list[dict[str, str]]]


class Build(TypedDict):
    """What the last build took; ``checksums``: of files outside the workspace."""

    profile: str
    overrides: list[str]
    sources: list[str]
    checksums: NotRequired[dict[str, str]]


class _Marker(TypedDict):
    format: PositiveInt


class _Applied(TypedDict):
    parts: list[str]


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


_AGAIN = "Delete it and build again: quit build."
_PROJECT = (
    "Take it from a copy of the workspace. Or, if people's work was pulled from the project, delete it: its key is in "
    "`reviews`. "
    'Or write {"key": "..."} into it: the key from [quit-review ...] in the project\'s description on the server.'
)
_Pair = Annotated[list[float], Field(min_length=2, max_length=2)]
_SHAPES: dict[str, tuple[TypeAdapter[Any], str]] = {
    "workspace.json": (TypeAdapter(_Marker), "Take it from a copy of the workspace, or build into a new folder."),
    "state.json": (TypeAdapter(dict[str, str]), _AGAIN),
    "build.json": (TypeAdapter(Build), "Delete it and name profile and sources again: quit build --source KIND:PATH."),
    "manifest.json": (TypeAdapter(Manifest), _AGAIN),
    "damaged.json": (TypeAdapter(Manifest), _AGAIN),
    "applied.json": (TypeAdapter(_Applied), "Delete it and apply the reviews again: quit review apply."),
    "lock.json": (TypeAdapter(dict[str, Any]), "Delete it."),
    "project.json": (TypeAdapter(ReviewProject), _PROJECT),
    "audit.json": (TypeAdapter(AuditDraw), "Delete it; the next push draws the audit again."),
    "replies.json": (TypeAdapter(dict[str, Any]), "Delete it; the replies are counted again."),
    "spent.json": (TypeAdapter(_Pair), "Delete it; what is spent is then read from usage.jsonl."),
    "sync.json": (TypeAdapter(PullState), "Delete it; the next pull reads everything again."),
}
"""Name of a file -> what it holds (more keys may be there), and what to do where it does not."""


def first_fault(error: ValidationError) -> str:
    """Return where a value has not its shape, and why: the first of all faults."""
    first = error.errors()[0]
    message = first["msg"].partition(" or instance of ")[0]  # a class of the program's own
    return f"{'.'.join(map(str, first['loc'])) or 'the whole'}: {message}"


def read_state(path: Path, default: Any = None) -> Any:
    """Return the value of a small file, ``default`` where there is none.

    Raises :class:`WorkspaceError` for one that cannot be read or has not the shape that its name stands for.
    """
    shape, advice = _SHAPES[path.name]
    try:
        if path.is_fifo():
            raise OSError("it is a pipe, not a file")
        value = json.loads(path.read_text(encoding="utf-8"))
        shape.validate_python(value, strict=True)
    except FileNotFoundError:
        return default
    except ValidationError as error:
        raise WorkspaceError(f"{path} is damaged: {first_fault(error)}. {advice}") from error
    except (OSError, ValueError, RecursionError) as error:
        raise WorkspaceError(f"{path} cannot be read: {error}. {advice}") from error
    return value

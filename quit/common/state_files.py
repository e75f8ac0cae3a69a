"""The small JSON files of a workspace: what they must hold, and one line for people where they do not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field, PositiveInt, TypeAdapter, ValidationError

from quit.errors import WorkspaceError


class _Part(BaseModel):
    file: str
    rows: int
    bytes: int
    sha256: str
    first: str | None = None
    last: str | None = None


class _Table(BaseModel):
    rows: int
    parts: list[_Part]


class _Manifest(BaseModel):
    tables: dict[str, _Table]
    supersedes: list[str] = []
    inputs: dict[str, str] = {}


class _Marker(BaseModel):
    format: PositiveInt


class _Build(BaseModel):
    profile: str
    overrides: list[str]
    sources: list[str]
    checksums: dict[str, str] = {}


class _Applied(BaseModel):
    parts: list[str]


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
    "build.json": (TypeAdapter(_Build), "Delete it and name profile and sources again: quit build --source KIND:PATH."),
    "manifest.json": (TypeAdapter(_Manifest), _AGAIN),
    "damaged.json": (TypeAdapter(_Manifest), _AGAIN),
    "applied.json": (TypeAdapter(_Applied), "Delete it and apply the reviews again: quit review apply."),
    "lock.json": (TypeAdapter(dict[str, Any]), "Delete it."),
    "project.json": (TypeAdapter(dict[str, Any]), _PROJECT),
    "audit.json": (TypeAdapter(dict[str, Any]), "Delete it; the next push draws the audit again."),
    "replies.json": (TypeAdapter(dict[str, Any]), "Delete it; the replies are counted again."),
    "spent.json": (TypeAdapter(_Pair), "Delete it; what is spent is then read from usage.jsonl."),
    "sync.json": (TypeAdapter(dict[str, Any]), "Delete it; the next pull reads everything again."),
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

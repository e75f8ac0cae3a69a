"""The types of what jobs, exports and releases return. Of an export: dictionaries, as ``quit export --json`` prints
them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, NotRequired, TypedDict, TypeVar

_T = TypeVar("_T", covariant=True)


@dataclass(frozen=True)
class JobResult(Generic[_T]):
    """``result``: what the job did; ``nothing_new``: why there was nothing to do, in one sentence."""

    result: _T
    nothing_new: str | None = None


class ExportedFormat(TypedDict):
    """One format of an export: its files, the manifest among them, and their bytes."""

    format: str
    files: int
    bytes: int


class PublishedFile(TypedDict):
    """A file on the hub."""

    path: str
    bytes: int


class Publication(TypedDict):
    """What was pushed to the hub, or would be; ``tag``: the release's name; ``url``: if it was pushed."""

    repository: str
    visibility: str
    tag: str | None
    dry_run: bool
    files: list[PublishedFile]
    url: NotRequired[str]
    licence: str | list[str]


class ExportResult(TypedDict):
    """What was written, and published if that was asked for."""

    out: str
    formats: list[ExportedFormat]
    published: NotRequired[Publication]


@dataclass(frozen=True)
class ReleaseFacts:
    """A release. ``new``: whether it was frozen now, None where it was only opened; ``note``: what differs in a release
    that exists already and is kept (usually empty)."""

    path: str
    name: str
    content_id: str
    new: bool | None = None
    note: str = ""

"""What is shown of a workspace or of a release (report, browser, ``quit show``)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from quit.dataset.release import ReaderInfo, Release, is_release, releases_of, verify
from quit.engine.reading import TableReader
from quit.engine.workspace import Workspace
from quit.settings import ReaderSettings, Settings


def open_to_read(place: str | Path) -> Workspace | Release:
    """Open a workspace or a release. Raises as ``Workspace.open`` and ``verify`` do."""
    return verify(place) if is_release(place) else Workspace.open(place)


def shown_releases(opened: Workspace | Release) -> Sequence[Release]:
    """Return the release itself, or those in a workspace's folder."""
    return [opened] if isinstance(opened, Release) else releases_of(opened)


def shown_readers(opened: TableReader, settings: Settings) -> Sequence[ReaderInfo | ReaderSettings]:
    """Return the readers of a release, or of the settings of a workspace's build, in profile order."""
    return opened.readers if isinstance(opened, Release) else settings.readers

"""A release read as a workspace, so that what shows a workspace (report, browser, ``quit show``) shows a release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from quit.common.ranges import WHOLE, Range
from quit.dataset.release import ReaderInfo, Release, is_release, releases_of, verify
from quit.engine.workspace import Workspace
from quit.settings import ReaderSettings, Settings


class FrozenWorkspace(Workspace):
    """The tables of a release behind what reads a workspace. It has no stage runs, no build and nothing to write."""

    def __init__(self, release: Release) -> None:
        super().__init__(release.path)
        self.release = release

    @property
    def state(self) -> dict[str, str]:
        """A run of ``read`` for each reader, in profile order: what the order of answers follows."""
        return {f"read:{info.name}": self.release.content_id for info in self.release.readers}

    def current(self, runs: Sequence[str] | None = None) -> dict[str, tuple[Path, dict[str, Any]]]:
        """Return nothing: a release has no stage runs."""
        return {}

    def part_files(
        self, name: str, shard: Range = WHOLE, runs: Sequence[str] | None = None, current: object = None
    ) -> list[tuple[Path, bool]]:
        """Return the files of a table, of answers those of all readers or of the readers of some runs."""
        files = []
        for table, paths in self.release.files.parts.items():
            base, _, reader = table.partition("/")
            if base == name and (not reader or runs is None or f"read:{reader}" in runs):
                files += [(path, shard == WHOLE) for path in paths]
        return files


def open_to_read(place: str | Path) -> Workspace:
    """Open a workspace, or a release as one. Raises as ``Workspace.open`` and ``verify`` do."""
    if not is_release(place):
        return Workspace.open(place)
    return FrozenWorkspace(verify(place))


def release_of(workspace: Workspace) -> Release | None:
    """Return the release that is read as a workspace, or None."""
    return workspace.release if isinstance(workspace, FrozenWorkspace) else None


def shown_releases(workspace: Workspace) -> list[Release]:
    """Return the release that is read as a workspace, else those in the workspace's folder."""
    release = release_of(workspace)
    return [release] if release else releases_of(workspace)


def shown_readers(workspace: Workspace, settings: Settings) -> Sequence[ReaderInfo | ReaderSettings]:
    """Return the readers of a release, or of the settings of a workspace's build, in profile order."""
    release = release_of(workspace)
    return release.readers if release else settings.readers


def shown_judge(workspace: Workspace, settings: Settings) -> str:
    """Return the name of the judge; of imported files, whose judge is unknown, ``published``."""
    release = release_of(workspace)
    judge: Mapping[str, Any] = release.content["settings"].get("judge", {}) if release else {}
    return judge.get("name", "published") if release else settings.judge.name

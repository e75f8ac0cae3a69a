"""What is shown of a workspace or of a release (report, browser, ``quit show``)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from quit.dataset.release import FOLDER, ReaderInfo, Release, is_release, releases_of, verify
from quit.engine.reading import TableReader
from quit.engine.workspace import Workspace
from quit.settings import ReaderSettings, Settings
from quit.text.vendors import family


def open_to_read(path: str | Path) -> Workspace | Release:
    """Open a workspace or a release. Raises as ``Workspace.open`` and ``verify`` do: of what lies in a folder
    ``releases``, that it is no release."""
    return verify(path) if is_release(path) or Path(path).parent.name == FOLDER else Workspace.open(path)


def shown_releases(opened: Workspace | Release) -> Sequence[Release]:
    """Return the release itself, or those in a workspace's folder."""
    return [opened] if isinstance(opened, Release) else releases_of(opened)


def reader_families(opened: TableReader, settings: Settings) -> dict[str, str]:
    """Return reader -> the family of its model (:func:`quit.text.vendors.family`)."""
    return {
        reader.name: family(reader.identity if isinstance(reader, ReaderInfo) else reader.model or reader.name)
        for reader in shown_readers(opened, settings)
    }


def shown_readers(opened: TableReader, settings: Settings) -> Sequence[ReaderInfo | ReaderSettings]:
    """Return the readers of a release, or of the settings of a workspace's build, in profile order."""
    return opened.readers if isinstance(opened, Release) else settings.readers


def shown_judge(opened: TableReader, settings: Settings) -> tuple[str, str]:
    """Return the judge's name and kind; ``published`` and nothing where imported files do not tell."""
    if not isinstance(opened, Release):
        return settings.judge.name, settings.judge.kind
    judge = opened.content["settings"].get("judge", {})
    return judge.get("name", "published"), judge.get("kind", "")


def embedded_labels(opened: TableReader, settings: Settings) -> str | None:
    """Return which models behind the labels are no language models, and what that means; None where all are."""
    labelers = (reader for reader in shown_readers(opened, settings) if reader.role == "labeler")
    embedded = [reader.name for reader in labelers if reader.kind == "embedded"]
    if shown_judge(opened, settings)[1] == "equivalence":
        embedded.append("the judge")
    if not embedded:
        return None
    return (
        f"No language models: {', '.join(embedded)}. They are small sentence encoders: the labels show how the "
        "pipeline works, not what language models infer."
    )

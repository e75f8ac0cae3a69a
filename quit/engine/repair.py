"""Parts of stage runs that are missing or altered: removed before a build, which makes them again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from quit.common.files import files_below, read_json, write_json
from quit.common.state_files import StateFile
from quit.engine.parts import Manifest, Part, fault_of
from quit.engine.workspace import Workspace, parts_of
from quit.errors import WorkspaceError

_DAMAGED: StateFile[Manifest] = StateFile("damaged.json", Manifest)
"""The manifest of a complete stage run while a part of it is built again."""


def discard_damaged(workspace: Workspace, folder: Path, outputs: Sequence[str]) -> list[str]:
    """Remove the missing or altered parts of a stage run from it; returns one sentence per part, and
    one for a manifest that cannot be used.

    The caller holds the workspace. A complete run that lost a part is unfinished from then on and keeps its other
    parts. A run with the manifest of another run keeps none. Parts of an unfinished run, or one that lost its
    manifest, have none: each page is compared with its own checksum (:func:`quit.engine.parts.fault_of`).
    """
    messages: list[str] = []
    try:
        manifest = workspace.manifest(folder)
    except WorkspaceError as error:
        about = read_json(folder / "manifest.json")
        foreign = isinstance(about, dict) and about.get("fingerprint", folder.name) != folder.name
        parts_too = [path for path in files_below(folder) if path.suffix == ".parquet"] if foreign else []
        workspace.remove(folder, [folder / "manifest.json", *parts_too])
        manifest, messages = None, [str(error)]
    parts: Sequence[tuple[Path, Part | None]]
    if manifest is None:
        parts = [(path, None) for name in outputs for path in sorted((folder / name).glob("part-*.parquet"))]
    else:
        parts = parts_of(folder, manifest)
    faults = {path: fault for path, part in parts if (fault := fault_of(path, part)) is not None}
    if faults and manifest is not None:
        _set_aside(workspace, folder, manifest)
    workspace.remove(folder, faults)
    return [*messages, *(f"{path.relative_to(folder).as_posix()} {fault}." for path, fault in faults.items())]


def discard_to_compare(workspace: Workspace, folder: Path) -> None:
    """Remove the parts of a stage run, to be made again; later stages run again only where they come out different."""
    manifest = workspace.manifest(folder)
    if manifest is not None:
        _set_aside(workspace, folder, manifest)
    workspace.remove(folder, [path for path in files_below(folder) if path.suffix == ".parquet"])


def _set_aside(workspace: Workspace, folder: Path, manifest: Manifest) -> None:
    workspace.refuse_links(folder)
    write_json(folder / _DAMAGED.name, manifest)
    workspace.remove(folder, [folder / "manifest.json"])


def rebuilt_identically(workspace: Workspace, folder: Path) -> bool:
    """Whether the parts of a finished run are those of before the damage; True where there was none.

    Not so where a language model was asked again, or shards are cut otherwise.
    """
    before, now = _DAMAGED.read(folder), workspace.manifest(folder)
    return before is None or now is None or before["tables"] == now["tables"]


def clear_damage_marker(folder: Path) -> None:
    """Forget what a run was before it was damaged."""
    (folder / _DAMAGED.name).unlink(missing_ok=True)

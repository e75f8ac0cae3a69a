"""An export as files: made whole in a hidden sibling folder, then renamed into place, with a manifest of checksums.

A reader of the target folder sees nothing, an earlier export or the new one, never a mixture. The manifest is written
last and holds no time, so the same release gives the same bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from quit.common.checksums import file_checksum
from quit.common.files import read_json, sync
from quit.common.folders import aside, locked, put_in_place, restore
from quit.common.progress import note
from quit.dataset.release import Release, fingerprint_of
from quit.engine.parts import fault_of
from quit.errors import InputError, QuitError, SettingsError, WorkspaceError
from quit.text.words import first_names
from quit.version import __version__

MANIFEST = "manifest.json"
MADE_BY = "QUIT builder"
FormatFacts = Mapping[str, Any]
"""What a manifest says of one format alone, by name, such as the reader of each key of the release JSON."""
FLUSHED = 1 << 28
"""Bytes after which a large file is flushed, so that the disk works while the rest is made."""


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One file of an export: path within it, SHA-256, size in bytes and number of records."""

    path: str
    sha256: str
    bytes: int
    rows: int


@dataclass(frozen=True)
class Manifest:
    """What an export holds. ``facts`` are the format's own."""

    format: str
    format_version: int
    program_version: str
    release_fingerprint: str
    embedded: bool
    facts: FormatFacts = field(default_factory=dict)
    files: tuple[FileEntry, ...] = ()
    made_by: str = MADE_BY

    def to_json(self) -> str:
        """Return the manifest as it is written: the same text for the same content."""
        return json.dumps(asdict(self), indent=2, ensure_ascii=False, sort_keys=True) + "\n"


@dataclass(frozen=True)
class Publication:
    """Exports of one dataset or corpus, a folder below ``out`` per format.

    ``fingerprint``: of what is exported; ``embedded``, in the manifest: whether a reader is an embedded guesser.
    ``overwrite``, ``renew``: as in :func:`quit.export.formats.export`.
    """

    out: Path
    fingerprint: str
    embedded: bool = False
    overwrite: bool = False
    renew: bool = False

    def write(
        self,
        formats: Sequence[str],
        write: Callable[[str, ExportFolder], FormatFacts],
        versions: Mapping[str, int],
    ) -> list[Manifest]:
        """Write each format that can be written: ``write`` gets its name and folder and returns the manifest's facts.

        Raises ``SettingsError`` for a target that must not be replaced, before anything is written;
        ``WorkspaceError`` when the disk refuses, and what ``write`` raises: both say what was written.
        """
        for name in formats:
            restore(self.out / name)
            self._check_target(self.out / name)
        manifests: list[Manifest] = []
        refused: dict[str, QuitError] = {}
        for name in formats:
            names = ", ".join(manifest.format for manifest in manifests)
            try:
                manifests.append(self._write_one(name, write, versions[name]))
            except QuitError as error:
                refused[name] = error
            except OSError as error:
                earlier = f" Finished before: {names}." if names else ""
                raise WorkspaceError(
                    f"The export {name} could not be written to {self.out}: {error.strerror or error}. What was there "
                    f"before is unchanged.{earlier} Make room or choose another folder, then run the export again."
                ) from error
        if len(formats) > 1 and refused:
            first, names = next(iter(refused.values())), ", ".join(manifest.format for manifest in manifests)
            faults = " ".join(f"{error} {name} was not written to {self.out}." for name, error in refused.items())
            raise type(first)(f"{faults} Written: {names or 'nothing'}.") from first
        for fault in refused.values():
            raise fault
        return manifests

    def _write_one(self, name: str, write: Callable[[str, ExportFolder], FormatFacts], version: int) -> Manifest:
        target = self.out / name
        with aside(target) as path:
            with ExportFolder(path) as folder:
                facts = write(name, folder)
                entries = folder.entries()
            manifest = Manifest(name, version, __version__, self.fingerprint, self.embedded, facts, tuple(entries))
            (path / MANIFEST).write_text(manifest.to_json(), encoding="utf-8")
            sync(path / MANIFEST)
            if not self.overwrite and _holds(target, manifest):
                note(f"{target} holds this export already.")
                return manifest
            with locked(target.parent):
                self._check_target(target)  # again: it may have changed while we wrote
                if not (self.overwrite or self.renew) and read_manifest(target) is not None:
                    raise SettingsError(
                        f"{target} already holds an export of this release with another card or other options: "
                        "choose another folder, or replace it (--overwrite, overwrite=True)."
                    )
                put_in_place(path, target)
        return manifest

    def _check_target(self, target: Path) -> None:
        """Refuse a target that must not be replaced: one that is no folder, that holds anything that an earlier export
        did not write, or, unless ``overwrite``, an earlier export of another release. A missing or empty folder is
        fine, and an export of this release, which may come out the same."""
        if target.is_symlink() or (target.exists() and not target.is_dir()):
            raise SettingsError(f"{target} exists and is not a folder: choose another folder.")
        if not target.is_dir() or not any(target.iterdir()):
            return
        manifest = read_manifest(target)
        if manifest is None or manifest.format != target.name:
            raise SettingsError(
                f"{target} exists and is not an earlier export: choose another folder, or remove it first."
            )
        own_paths = {MANIFEST, *(entry.path for entry in manifest.files)}
        paths = (path.relative_to(target).as_posix() for path in sorted(target.rglob("*")) if not path.is_dir())
        if strangers := [path for path in paths if path not in own_paths]:
            raise SettingsError(
                f"{target} also holds files that no export wrote ({first_names(strangers)}), which would be deleted: "
                "move them, or choose another folder."
            )
        if not self.overwrite and manifest.release_fingerprint != self.fingerprint:
            raise SettingsError(
                f"{target} already holds an export of release {manifest.release_fingerprint[:12]}: "
                "choose another folder, or replace it (--overwrite, overwrite=True)."
            )


class ExportFolder:
    """Where a format writes its files: ask for a ``path``, write and close it, then ``record`` what it holds.

    A finished file is flushed and read back for its checksum while the next one is written.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._background = ThreadPoolExecutor(max_workers=1)
        self._entries: list[Future[FileEntry]] = []

    def path(self, name: str) -> Path:
        """Return where to write the file ``name`` (a relative path with slashes); its folder exists."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def record(self, name: str, rows: int) -> None:
        """Record a finished file with its checksum, as read back, and the number of records it holds."""
        self._entries.append(self._background.submit(self._entry, name, rows))

    def record_lines(self, name: str, rows: int) -> None:
        """Record a file of lines; one without any, such as of an empty split, is removed, for readers end at it."""
        if rows:
            self.record(name, rows)
        else:
            self.path(name).unlink()

    def text(self, name: str, text: str) -> None:
        """Write a whole file of text; its records are its lines."""
        self.path(name).write_text(text, encoding="utf-8")
        self.record(name, text.count("\n"))

    def write(self, file: BinaryIO, data: memoryview) -> None:
        """Write to one of its files, and have every :data:`FLUSHED` bytes of it written to disk meanwhile."""
        before = file.tell() // FLUSHED
        file.write(data)
        if file.tell() // FLUSHED > before:
            file.flush()
            self._background.submit(sync, Path(file.name))

    def _entry(self, name: str, rows: int) -> FileEntry:
        path = self.root / name
        sync(path)
        return FileEntry(name, file_checksum(path), path.stat().st_size, rows)

    def entries(self) -> list[FileEntry]:
        """Return what was recorded, by path, once all of it is on disk. Raises ``OSError`` where the disk refuses."""
        return sorted((entry.result() for entry in self._entries), key=lambda entry: entry.path)

    def digest(self) -> str:
        """Return 16 hexadecimal digits over the checksums of the files recorded so far, in the order of their paths. A
        card's YAML names them, since ``datasets`` takes an export of the same folder name and YAML from its cache.
        Raises as ``entries``."""
        return hashlib.sha256("".join(entry.sha256 for entry in self.entries()).encode()).hexdigest()[:16]

    def __enter__(self) -> ExportFolder:
        return self

    def __exit__(self, *_: object) -> None:
        self._background.shutdown(cancel_futures=True)


def read_manifest(folder: Path) -> Manifest | None:
    """Return the manifest of an export of ours, or None when the folder holds none."""
    try:
        fields = read_json(folder / MANIFEST)
        if fields.get("made_by") != MADE_BY:
            return None
        return Manifest(**{**fields, "files": tuple(FileEntry(**entry) for entry in fields["files"])})
    except (AttributeError, KeyError, TypeError):
        return None


def is_exported(release: Release, format: str, out: str | Path) -> bool:
    """Whether ``out/<format>`` holds an export of this release."""
    manifest = read_manifest(Path(out) / format)
    return manifest is not None and (manifest.format, manifest.release_fingerprint) == (
        format,
        fingerprint_of(release.provenance, release.readers),
    )


def verify(folder: Path) -> Manifest:
    """Return the manifest after comparing every file with its checksum.

    Raises ``InputError`` when the folder is no export of ours, or a file is missing or was changed (it names the file).
    """
    manifest = read_manifest(Path(folder))
    if manifest is None:
        raise InputError(f"{folder} holds no {MANIFEST} of {MADE_BY}: it is not a complete export.")
    for entry in manifest.files:
        if fault := fault_of(Path(folder) / entry.path, {"bytes": entry.bytes, "sha256": entry.sha256}):
            raise InputError(f"{entry.path} of the export {folder} {fault}.")
    return manifest


def _holds(target: Path, manifest: Manifest) -> bool:
    """Whether the target holds this very export: options are no part of a manifest, so only its files tell. Raises as
    ``verify``."""
    existing = read_manifest(target)
    if existing is None or existing.to_json() != manifest.to_json():
        return False
    try:
        return bool(verify(target))
    except InputError as error:
        raise InputError(f"{error} Replace it: --overwrite, overwrite=True.") from None

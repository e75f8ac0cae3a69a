"""A workspace in a folder of this machine."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from quit.common.files import LEFTOVER, remove_leftovers, replacing, sync, write_json, writing
from quit.errors import WorkspaceError, shell_word
from quit.store.base import CHANGING, Make, Part, described, this_process
from quit.store.parts import damage
from quit.store.state_files import read_state


class FolderStore:
    """A folder as a :class:`quit.store.base.Store`. It is always seen as it is now."""

    objects = None

    def __init__(self, path: Path) -> None:
        self.path = path

    def __str__(self) -> str:
        return str(self.path)

    @property
    def address(self) -> str:
        return str(self.path.resolve())

    def has(self, path: Path, *, now: bool = False) -> bool:
        return path.is_file()

    def below(self, folder: Path) -> Iterator[tuple[Path, float]]:
        for path in folder.rglob("*"):
            if path.is_file() and not LEFTOVER.fullmatch(path.name):
                yield path, path.stat().st_mtime

    def fetch(self, parts: Mapping[Path, Part | None]) -> None:
        for path, part in parts.items():
            fault = None if path.is_file() else "is missing"
            if part is not None:
                fault = damage(path, part)
            if fault is not None:
                raise WorkspaceError(f"{path} {fault}. Build it again: quit build -w {shell_word(self)}")

    def fault(self, path: Path, part: Part | None) -> str | None:
        return damage(path, part)

    def write(self, path: Path, make: Make) -> None:
        with writing(path), replacing(path) as temporary:
            make(temporary)

    add = write

    def create(self, path: Path, make: Make, place: Callable[[Path, Path], object] = os.link) -> bool:
        with writing(path):
            try:
                with replacing(path, place=place) as temporary:
                    make(temporary)
            except FileExistsError:  # unlike a move, a link refuses to replace
                return False
        return True

    @contextmanager
    def changing(self, path: Path) -> Iterator[Path]:
        with writing(path):
            yield path

    def add_folder(self, source: Path, target: Path, last: str) -> None:
        with writing(target):
            for path in sorted(source.rglob("*")):
                sync(path)
            os.rename(source, target)
            sync(target.parent)

    def remove(self, paths: Iterable[Path]) -> None:
        for path in paths:
            with writing(path):
                path.unlink(missing_ok=True)

    @contextmanager
    def lock(self, seconds: float, waiting: Callable[[str], None]) -> Iterator[None]:
        """Hold the folder by a lock of the system, which frees it when the process dies, however it dies."""
        lock = FileLock(self.path / "lock")
        try:
            try:
                lock.acquire(timeout=0)
            except Timeout:
                waiting(f"Another run holds {self} ({described(self.holder()) or 'just begun'}); waiting for it.")
                lock.acquire(timeout=seconds)
        except Timeout:
            raise WorkspaceError(
                f"Another run still holds {self} ({described(self.holder()) or 'unknown'}) after {seconds:g} s. "
                "Try again when it has finished."
            ) from None
        except OSError as error:
            raise WorkspaceError(f"Cannot lock {self}: {error}. Check that you may write there.") from error
        try:
            self.remove_leftovers()
            write_json(self.path / "lock.json", this_process())
            yield
        finally:
            (self.path / "lock.json").unlink(missing_ok=True)
            lock.release()

    def holder(self) -> dict[str, Any] | None:
        try:
            return read_state(self.path / "lock.json")
        except WorkspaceError:  # half a line, of a machine that went down
            return None

    def remove_leftovers(self, older: float = 0) -> None:
        """Remove unfinished files of killed runs, older than ``older`` seconds. Only lock holders write them."""
        for files in ("tables/**/*", *(f"{name}.*" for name in (*CHANGING, "lock.json"))):
            remove_leftovers(self.path, files, older)

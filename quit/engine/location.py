"""Where a workspace is, who holds it, and its small files.

::

    W/workspace.json   layout version
    W/build.json       what the last build took (:mod:`quit.engine.last_build`)
    W/lock             held by the run that works on it
"""

from __future__ import annotations

import os
import socket
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from pydantic import PositiveInt
from typing_extensions import TypedDict

from quit import contracts
from quit.common.files import files_below, remove_leftovers, write_json
from quit.common.state_files import StateFile
from quit.engine.last_build import Build, read_build, write_build
from quit.errors import WorkspaceError, refuse_newer
from quit.text.words import shell_word

MARKER = "workspace.json"
CHANGING = (
    *(MARKER, "build.json", "state.json", "usage.jsonl"),
    *("reviews/applied.json", "reviews/audit.json", "reviews/project.json", "reviews/sync.json"),
)
"""The small files of a workspace that are written more than once."""


class _Marker(TypedDict):
    format: PositiveInt


_MARKER: StateFile[_Marker] = StateFile(
    MARKER, _Marker, "Take it from a copy of the workspace, or build into a new folder."
)
_LOCK: StateFile[dict[str, Any]] = StateFile("lock.json", dict[str, Any], "Delete it.")


class Location:
    """A folder that is or will be a workspace, unchecked."""

    def __init__(self, location: str | Path) -> None:
        self.path = Path(location)

    def __str__(self) -> str:
        return str(self.path)

    @classmethod
    def open(cls, location: str | Path | Self) -> Self:
        """Open an existing workspace; one that is open already is only checked.

        Raises :class:`WorkspaceError` when there is none, or one this program cannot read.
        """
        workspace = location if isinstance(location, cls) else cls(str(location))
        workspace.check_format()
        return workspace

    @classmethod
    def create(cls, location: str | Path | Self) -> Self:
        """Open a workspace, making it where there is none.

        Raises :class:`WorkspaceError` for a location with other files in it, and as :meth:`open` does.
        """
        workspace = location if isinstance(location, cls) else cls(str(location))
        if not workspace.exists:
            if workspace.path.is_file() or any(True for _ in files_below(workspace.path)):
                what = "is a file, not" if workspace.path.is_file() else "holds other files and is not"
                raise WorkspaceError(f"{workspace} {what} a workspace. Name a new or an empty folder.")
            workspace.put_json(MARKER, {"format": contracts.WORKSPACE_FORMAT, "id": uuid.uuid4().hex})
        workspace.check_format()
        return workspace

    def check_format(self) -> None:
        """Raise :class:`WorkspaceError` for no workspace, or one that a newer program made."""
        if not self.exists:
            path = shell_word(self)
            if (self.path / "release.json").is_file():
                raise WorkspaceError(
                    f"{self} is a release, not a workspace. For it there are: quit release show {path}; and "
                    f"with -w {path}: quit export, report, browse, show, query and evaluate."
                )
            what = "is a file, not a workspace" if self.path.is_file() else "is not a workspace"
            here = [shell_word(marker.parent) for marker in sorted(Path().glob(f"*/{MARKER}"))[:5]]
            others = f" Here there are: {', '.join(f'-w {name}' for name in here)}." if here else ""
            raise WorkspaceError(
                f"{self} {what}.{others} Name another folder, or build it: quit build -w {path} --source starter"
            )
        if marker := _MARKER.read(self.path):
            refuse_newer(f"The workspace {self}", marker["format"], contracts.WORKSPACE_FORMAT)

    @property
    def address(self) -> str:
        """The whole path: what another process opens it by."""
        return str(self.path.resolve())

    @property
    def name(self) -> str:
        """The last part of the address."""
        return Path(self.address).name

    @property
    def exists(self) -> bool:
        """Whether there is a workspace."""
        return (self.path / MARKER).is_file()

    # Locking

    @contextmanager
    def lock(self, seconds: float, notify: Callable[[str], None] = lambda _: None) -> Iterator[None]:
        """Hold the workspace for one run, by a lock of the system that ends with the process; then remove what killed
        runs left.

        ``notify`` is called once with who holds it. Raises :class:`WorkspaceError` when it is still held
        after ``seconds``.
        """
        from filelock import FileLock, Timeout

        lock = FileLock(self.path / "lock")
        try:
            try:
                held = lock.acquire(timeout=0)
            except Timeout:
                notify(f"Another run holds {self} ({self.holder or 'just begun'}); waiting for it.")
                held = lock.acquire(timeout=seconds)
        except Timeout:
            raise WorkspaceError(
                f"Another run still holds {self} ({self.holder or 'unknown'}) after {seconds:g} s. Try again when it "
                "has finished."
            ) from None
        except OSError as error:
            raise WorkspaceError(f"Cannot lock {self}: {error}. Check that you may write there.") from error
        with held:
            try:
                for files in ("tables/**/*", *(f"{name}.*" for name in (*CHANGING, "lock.json"))):
                    remove_leftovers(self.path, files)
                holder = {"pid": os.getpid(), "host": socket.gethostname(), "since": time.strftime("%Y-%m-%d %H:%M:%S")}
                write_json(self.path / "lock.json", holder)
                yield
            finally:
                (self.path / "lock.json").unlink(missing_ok=True)

    @property
    def holder(self) -> str:
        """Who holds the workspace: process, host and time; empty where nobody does."""
        try:
            holder = _LOCK.read(self.path) or {}
        except WorkspaceError:  # half a line, of a machine that went down
            return ""
        facts = (holder.get(key, "?") for key in ("pid", "host", "since"))
        return "process {} on {} since {}".format(*facts) if holder else ""

    # Small files

    def put_json(self, name: str, value: Any) -> None:
        """Write one of the small files that change."""
        write_json(self.path / name, value)

    @property
    def build(self) -> Build | None:
        """What the last build took, files by their whole paths; None where there was none."""
        return read_build(self.path) if self.exists else None

    def set_build(self, build: Build) -> None:
        """Remember how this workspace is built. The caller holds the workspace, and has read ``build`` since then: else
        it would write over what another run has remembered."""
        write_build(self.path, build)

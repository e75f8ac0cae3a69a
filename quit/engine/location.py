"""Where a workspace is, who holds it, and its small files.

::

    W/workspace.json   layout version
    W/build.json       profile, settings and sources of the last build
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Self

from quit import contracts
from quit.common.files import json_bytes
from quit.errors import WorkspaceError, refuse_newer, shell_word
from quit.settings import with_whole_paths
from quit.store import open_store
from quit.store.base import MARKER, Make, described
from quit.store.state_files import read_state


class Location:
    """A folder or URL that is or will be a workspace, unchecked. Raises what a store refuses.

    ``store`` writes its files and fetches them to below ``path`` (of a workspace at a URL, a local copy).
    """

    def __init__(self, location: str | Path) -> None:
        self.store = open_store(location)
        self.path = self.store.path
        self.is_locked = False
        self._replies: Any = None

    def __str__(self) -> str:
        return str(self.store)

    @classmethod
    def open(cls, location: str | Path | Self) -> Self:
        """Open an existing workspace, a folder or a URL; one that is open already is only checked.

        Raises :class:`WorkspaceError` when there is none, or one this program cannot read, and what a store refuses.
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
            if any(True for _ in workspace.store.below(workspace.path)):
                raise WorkspaceError(
                    f"{workspace} holds other files and is not a workspace. Name a new or an empty folder."
                )
            marker = {"format": contracts.WORKSPACE_FORMAT, "id": uuid.uuid4().hex}
            workspace.store.add(workspace.path / MARKER, as_json(marker))  # another machine's, at once, is as good
            workspace.refresh()
        workspace.check_format()
        return workspace

    def check_format(self) -> None:
        """Raise :class:`WorkspaceError` for no workspace, or one that a newer program made."""
        if not self.exists:
            path = shell_word(self)
            if (self.path / "release.json").is_file():
                raise WorkspaceError(
                    f"{self} is a release, not a workspace. For it there are: quit release show {path}; quit export "
                    f"--release {path}; and with -w {path}: quit report, browse, show and query."
                )
            raise WorkspaceError(
                f"{self} is not a workspace. Name another folder, or build it: quit build -w {path} --source starter"
            )
        refuse_newer(f"The workspace {self}", read_state(self.path / MARKER)["format"], contracts.WORKSPACE_FORMAT)

    @property
    def address(self) -> str:
        """The whole path, or the URL: what another process opens it by."""
        return self.store.address

    @property
    def name(self) -> str:
        """The last part of the address."""
        return Path(self.address).name

    @property
    def exists(self) -> bool:
        """Whether there is a workspace."""
        return self.store.has(self.path / MARKER)

    def apply_settings(self, settings: Any) -> None:
        """Use the settings ``remote`` of a run for a shared store."""
        if self.store.objects is not None and settings.remote != self.store.objects.how:
            self.store.objects.use(settings.remote)

    def refresh(self) -> None:
        """Read again what others have written. Raises :class:`WorkspaceError` where the workspace is gone."""
        if not self.store.has(self.path / MARKER, now=True):
            raise WorkspaceError(f"{self} is not a workspace any more: {MARKER} is gone. Restore it, or build again.")

    # Locking

    @contextmanager
    def lock(self, seconds: float, notify: Callable[[str], None] = lambda _: None) -> Iterator[None]:
        """Hold the workspace for one run; a run that dies frees it.

        ``notify`` is called once with who holds it. Raises :class:`WorkspaceError` when it is still held
        after ``seconds``.
        """
        with self.store.lock(seconds, notify):
            self.is_locked = True
            try:
                yield
                self.flush_replies()
            finally:
                self.is_locked = False

    @property
    def holder(self) -> str:
        """Who holds the workspace: process, host and time; empty where nobody does."""
        return described(self.store.holder())

    # Small files, and replies of language models (those of a folder are in the generation cache of its machine alone)

    def put_json(self, name: str, value: Any) -> None:
        """Write one of the small files that change."""
        self.store.write(self.path / name, as_json(value))

    def changing(self, name: str) -> AbstractContextManager[Path]:
        """Give the path of a small file to change in place; others see the change afterwards."""
        return self.store.changing(self.path / name)

    def download_folder(self, folder: Path) -> None:
        """Make sure that every file below a folder is here."""
        self.store.fetch({path: None for path, _ in self.store.below(folder)})

    def keep_replies(self, cache: Any) -> None:
        """Fetch the replies that a shared store has into a ``GenerationCache``, and copy new ones to it from now on."""
        if self.store.objects is not None and self._replies is None:
            from quit.engine.shared_replies import SharedReplies

            self._replies = SharedReplies(self.store.objects, cache)

    def flush_replies(self) -> None:
        """Copy the replies that came in so far to the shared store."""
        if self._replies is not None:
            self._replies.flush()

    @property
    def build(self) -> dict[str, Any] | None:
        """Profile, settings and sources of the last build, or None."""
        return read_state(self.path / "build.json")

    def set_build(self, values: Mapping[str, Any]) -> None:
        """Remember how this workspace is built, files in its ``overrides`` by their whole paths. The caller holds the
        workspace, and has read ``build`` since then."""
        build = {**values, "overrides": with_whole_paths(values["overrides"])}
        if build != self.build:
            self.put_json("build.json", build)


def as_json(value: Any) -> Make:
    """Return what writes a value as JSON."""
    return lambda temporary: temporary.write_bytes(json_bytes(value))

"""A folder that one run at a time fills: a corpus, an index, a graph, the results of a system."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from quit.common.files import read_json, write_json, writing
from quit.errors import SettingsError, WorkspaceError

MARK = ".quit.json"
"""Says of a folder that :func:`building` made it, and what it holds."""


def is_own(folder: Path, kind: str) -> bool:
    """Whether this program made a folder, of this kind: its mark says so, whatever the names in it are."""
    return read_json(folder / MARK) == {"made_by": "QUIT builder", "kind": kind}


def check_target(out: Path, kind: str) -> None:
    """Raise :class:`SettingsError` for a file, and a folder with anything in it that is not of this kind."""
    if out.is_file():
        raise SettingsError(f"{out} is a file: choose another --out.")
    if any(out.glob("[!.]*")) and not is_own(out, kind):
        raise SettingsError(f"{out} exists and holds no {kind}: choose another --out, or remove it first.")


@contextmanager
def building(out: Path, kind: str) -> Iterator[None]:
    """Make a folder of a kind (``corpus``), marked as such, and keep other runs out of it; a new one in which nothing
    was written goes again.

    Raises as :func:`check_target`, and :class:`WorkspaceError` when the disk refuses or another run is at work there.
    """
    check_target(out, kind)
    is_new, lock, mark = not out.exists(), out / ".lock", out / MARK
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
        try:
            with FileLock(lock, timeout=0):
                write_json(mark, {"made_by": "QUIT builder", "kind": kind})
                try:
                    yield
                finally:
                    if not any(out.glob("[!.]*")):
                        mark.unlink(missing_ok=True)
                    if is_new and [*out.iterdir()] == [lock]:
                        lock.unlink()
                        out.rmdir()
        except Timeout:
            raise WorkspaceError(f"Another run is at work in {out}. Wait for it, or choose another --out.") from None

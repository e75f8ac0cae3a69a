"""Folders that are there whole or not at all: made aside, in a hidden folder beside their place, then moved there."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from quit.common.files import refuse_links, sync


@contextmanager
def locked(folder: Path, wait: bool = True) -> Iterator[bool]:
    """Hold an advisory lock on a folder; it ends with the process. Yields whether it was got."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield True
    except BlockingIOError:
        yield False
    finally:
        os.close(handle)


@contextmanager
def aside(target: Path) -> Iterator[Path]:
    """Give a locked, hidden folder beside the target, which is removed unless :func:`put_in_place` moved it.

    Those of killed runs, whose locks are gone, are removed first.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    prefix, suffix = f".{target.name}.", ".partial"
    with ExitStack() as stack:
        with locked(target.parent):  # so that no other process removes our folder before it is locked
            for leftover in sorted(target.parent.glob(f"{prefix}*{suffix}")):
                with locked(leftover, wait=False) as has_lock:
                    if has_lock:
                        shutil.rmtree(leftover, ignore_errors=True)
            path = Path(tempfile.mkdtemp(prefix=prefix, suffix=suffix, dir=target.parent))
            path.chmod(0o755)  # mkdtemp's 0700 is for temporary folders
            stack.callback(shutil.rmtree, path, ignore_errors=True)
            stack.enter_context(locked(path))
        yield path


def put_in_place(folder: Path, target: Path) -> None:
    """Move a folder to its place; what was there is replaced. Raises ``InputError`` for a link there."""
    refuse_links(target, "what it leads to would be replaced")
    old = _old(target)
    shutil.rmtree(old, ignore_errors=True)
    if target.exists() and any(target.iterdir()):
        target.rename(old)
    try:
        folder.rename(target)
    except OSError:
        if old.exists():
            old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)
    sync(target.parent)


def restore(target: Path) -> None:
    """Bring back what was there, if a run was killed between the two renames of :func:`put_in_place`."""
    if _old(target).exists():
        with locked(target.parent):
            if _old(target).exists() and not target.exists():
                _old(target).rename(target)


def _old(target: Path) -> Path:
    return target.parent / f".{target.name}.replaced"  # the name of "." is empty

"""Folders that one process fills, once, and all use: for a run of the tests, or for good."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from quit.common.cache import cache_folder


def once(folder: Path, make: Callable[[Path], object]) -> Path:
    """Return a folder, which ``make`` filled when it was first asked for; other processes that ask meanwhile wait."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f".{folder.name}.lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        if not folder.is_dir():
            draft = Path(tempfile.mkdtemp(dir=folder.parent))
            try:
                make(draft)
                draft.rename(folder)
            finally:
                shutil.rmtree(draft, ignore_errors=True)
    return folder


def kept(name: str, make: Callable[[Path], object]) -> Path:
    """Return a folder below the cache's ``tests``, for what is costly to make and always the same: it outlasts a
    run."""
    return once(Path(os.environ.get("QUIT_TEST_CACHE") or cache_folder("tests")) / name, make)

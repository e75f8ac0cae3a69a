"""Arrays in files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from quit.common.files import replacing, writing
from quit.common.manifests import fault, write_manifest
from quit.common.progress import note


def write_array(path: Path, array: np.ndarray) -> None:
    """Write an array as ``.npy``. Raises :class:`quit.errors.WorkspaceError` where the disk refuses."""
    with writing(path), replacing(path) as temporary, temporary.open("wb") as file:
        np.save(file, array)


def stored_array(path: Path, make: Callable[[], np.ndarray]) -> np.ndarray:
    """Return the array of a file, memory-mapped; what ``make`` returns is written first where there is none, or where
    the file has not the checksum of the manifest beside it."""
    manifest = path.with_suffix(".json")
    if problem := fault(manifest):
        if path.is_file():
            note(f"{problem}: it is computed again")
        write_array(path, make())
        write_manifest(manifest, {}, [path])
    return np.load(path, mmap_mode="r")

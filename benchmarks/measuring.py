"""What the benchmarks measure with: seconds, peak memory, and what the disk needs for as many bytes."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def timed(figures: dict[str, float], name: str) -> Iterator[None]:
    """Add the seconds that the block takes to ``figures[name]``."""
    start = time.perf_counter()
    yield
    figures[name] = figures.get(name, 0.0) + time.perf_counter() - start


def peak_mib() -> int:
    """Return the peak memory of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def bytes_below(folder: Path) -> int:
    """Return the bytes of a file, or of all files below a folder (0 where there is none)."""
    return sum(path.stat().st_size for path in (folder, *folder.rglob("*")) if path.is_file())


def write_seconds(folder: Path, size: int) -> float:
    """Return the seconds that the disk of ``folder`` needs to write and flush so many random bytes, as 1 GiB tells."""
    piece, path, figures = os.urandom(2**24), folder / "floor", dict[str, float]()
    measured = min(size, 2**30)
    with timed(figures, "disk"), path.open("wb") as file:
        for begin in range(0, measured, len(piece)):
            file.write(piece[: measured - begin])
        file.flush()
        os.fsync(file.fileno())
    path.unlink()
    return figures["disk"] * size / max(1, measured)

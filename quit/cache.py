"""The folder for what may be made again: encodings of corpora, probabilities of slow models. Deleting it costs time, nothing else."""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "QUIT_CACHE"


def cache_folder(name: str) -> Path:
    """Return the cache folder of that name (not made yet): in ``$QUIT_CACHE``, else in ``~/.cache/quit``."""
    root = os.environ.get(VARIABLE)
    return (Path(root).expanduser().absolute() if root else Path.home() / ".cache" / "quit") / name

"""What is costly to make and always the same: folders under the cache's ``tests`` folder, which outlast a run."""

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from quit.common.cache import cache_folder


def kept(name: str, make: Callable[[Path], object]) -> Path:
    """Return the folder ``name``, which ``make`` filled when it was first asked for; several processes may ask."""
    folder = Path(os.environ.get("QUIT_TEST_CACHE") or cache_folder("tests")) / name
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(dir=folder.parent))
        try:
            make(draft)
            draft.rename(folder)
        except OSError:
            if not folder.is_dir():
                raise  # else another process was first
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    return folder

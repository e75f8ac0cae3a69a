"""Diaries: files of JSON Lines that runs append to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def diary_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield (line number from 1, value) of a diary, oldest first; nothing where there is none.

    A line that is not JSON is left out: a kill cut it short.
    """
    if not path.is_file():
        return
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").split("\n"), start=1):
        try:
            yield number, json.loads(line)
        except (ValueError, RecursionError):
            continue

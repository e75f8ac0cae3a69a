"""Pictures as PNG files, for the curves of an experiment and the report of a graph."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from quit.common.files import replacing, writing
from quit.errors import importing


@contextmanager
def picture(target: Path, width: float, height: float, columns: int = 1) -> Iterator[Any]:
    """Yield the axes of a picture of so many inches, several for ``columns``; written to ``target`` on leaving.

    Raises :class:`MissingDependency` without matplotlib, :class:`quit.errors.WorkspaceError` when the disk refuses.
    """
    with importing("A plot"):
        from matplotlib.figure import Figure
    figure = Figure(figsize=(width, height), layout="constrained")
    yield figure.subplots(1, columns)
    with writing(target), replacing(target) as temporary:
        figure.savefig(temporary, format="png", dpi=130, metadata={"Software": None})

"""The files of an experiment: the table as CSV and JSON, and the curves of precision and recall."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from quit.common.files import write_json
from quit.qa.bandits.experiment import Grid
from quit.qa.experiment import write_csv
from quit.render.plots import MARKS, picture

TABLE, SUMMARY = "bandits.csv", "bandits.json"
CURVES = {"precision": "bandits.png", "recall": "bandits-recall.png"}


def write(grid: Grid, folder: Path, about: Mapping[str, Any]) -> dict[str, Any]:
    """Write ``bandits.csv`` (long table) and ``bandits.json`` (``about`` and :meth:`Grid.summary`); return the latter.

    Raises :class:`quit.errors.WorkspaceError` where the disk refuses.
    """
    summary = {**about, **grid.summary()}
    write_csv(folder / TABLE, summary["rows"])
    write_json(folder / SUMMARY, summary)
    return summary


def plot(grid: Grid, folder: Path, metric: str, title: str) -> Path:
    """Draw a metric of :data:`CURVES` over the budget, one line per policy, dashed for trees (figures 4, 8-11 and 13),
    and return the picture's path.

    Raises as :func:`quit.render.plots.picture`.
    """
    target = folder / CURVES[metric]
    with picture(target, 9, 5.5) as axes:
        for style, policy in enumerate(grid.policies):
            for structure in grid.structures:
                values = [grid.value(policy.name, b, metric, structure).mean() for b in grid.settings.budgets]
                if np.isnan(values).any():
                    continue
                axes.plot(
                    [100 * share for share in grid.settings.budgets],
                    values,
                    color=f"C{style % 10}",
                    marker=MARKS[style % len(MARKS)],
                    markersize=4,
                    linewidth=1.2,
                    linestyle="--" if structure == "tree" else "-",
                    label=policy.title + (" (tree)" if structure == "tree" else ""),
                )
        axes.set_xlabel("budget, % of all documents of a request")
        axes.set_ylabel(metric)
        axes.set_title(title)
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return target

"""The files of an experiment: the table as CSV and JSON, and the curves of precision and recall."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from quit.common.files import write_json
from quit.qa.bandits import metrics
from quit.qa.bandits.experiment import Grid
from quit.qa.experiment import write_csv
from quit.render.plots import picture

TABLE, SUMMARY = "bandits.csv", "bandits.json"
CURVES = {"precision": "bandits.png", "recall": "bandits-recall.png"}
_MARKS = "osv^<>PXD*dhH8p"


def write(grid: Grid, folder: Path, about: dict[str, Any]) -> dict[str, Any]:
    """Write ``bandits.csv`` (long table) and ``bandits.json`` (the same, table 4, alpha-nDCG, ``about``); return the
    latter.

    Raises :class:`quit.errors.WorkspaceError` where the disk refuses.
    """
    rows = grid.rows()
    summary = {
        **about,
        "requests": len(grid.requests),
        "left_out": grid.left_out,
        "without_relevant": grid.without_relevant,
        "arms": {"mean": float(grid.arms.mean()), "least": int(grid.arms.min()), "most": int(grid.arms.max())},
        "documents_a_request": float(grid.sizes.mean()),
        "settings": grid.settings.model_dump(mode="json"),
        "alpha_ndcg": alpha_ndcg_rows(grid),
        "trees": grid.trees(),
        "rows": rows,
    }
    write_csv(folder / TABLE, rows)
    write_json(folder / SUMMARY, summary)
    return summary


def alpha_ndcg_rows(grid: Grid) -> list[dict[str, Any]]:
    """Return table 3: policy, structure and alpha-nDCG after each of :data:`metrics.CUTOFFS` documents."""
    rows = []
    for number, policy in enumerate(grid.policies):
        for tree, structure in enumerate(grid.structures):
            values = grid.ndcg[:, number, tree].mean(axis=0)
            if not np.isnan(values).any():
                at = {f"alpha_ndcg@{k}": float(value) for k, value in zip(metrics.CUTOFFS, values, strict=True)}
                rows.append({"policy": policy.name, "structure": structure, **at})
    return rows


def plot(grid: Grid, folder: Path, metric: str = "precision", title: str = "") -> Path:
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
                    marker=_MARKS[style % len(_MARKS)],
                    markersize=4,
                    linewidth=1.2,
                    linestyle="--" if structure == "tree" else "-",
                    label=policy.title + (" (tree)" if structure == "tree" else ""),
                )
        axes.set_xlabel("budget, % of all documents of a request")
        axes.set_ylabel(metric.replace("_", " "))
        axes.set_title(title)
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return target

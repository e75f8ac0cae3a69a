"""Plots of a graph that people look at, and the numbers behind them as ``report.json``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from quit.common.files import write_json
from quit.qa.corpora.graph import NeighbourhoodGraph, in_degrees
from quit.qa.corpora.reach import DEPTH, WIDTH, reach
from quit.qa.indexes.built import BuiltCorpus
from quit.render.plots import picture
from quit.retrieval.protocols import FirstStage

BINS = 40
RANKS = (1, 2, 5, 10, 20, 50, 100)
_INK = "#1f4e79"
_STEPS = (("@{d}", "first stage", "#8fb3d9"), ("@{d}+1", "+ 1 hop", "#4f86bd"), ("@{d}+2", "+ 2 hops", "#1f4e79"))


def write_report(
    corpus: BuiltCorpus, graph: NeighbourhoodGraph, stages: Mapping[str, FirstStage], out: Path
) -> list[Path]:
    """Write ``report.json``, ``graph.png`` (degrees, similarities) and, with first stages, ``reach.png``; return the
    files.

    Raises as :func:`quit.render.plots.picture`.
    """
    numbers: dict[str, Any] = {
        "graph": graph.facts,
        "in_degree": _degrees(graph),
        "similarity_by_rank": _by_rank(graph),
        "reach": [row for name, stage in stages.items() for row in reach(corpus, name, stage, graph)],
        "hop_width": min(WIDTH, graph.k),
    }
    files = [out / "report.json"]
    files.append(_plot_graph(numbers, out / "graph.png"))
    if numbers["reach"]:
        files.append(_plot_reach(numbers["reach"], DEPTH, out / "reach.png"))
    write_json(files[0], numbers)
    return files


def _degrees(graph: NeighbourhoodGraph) -> dict[str, Any]:
    """Return a histogram of in-degrees: edges of the bins (documents), counts."""
    degree = in_degrees(graph.edges)
    counts, edges = np.histogram(degree, bins=min(BINS, int(degree.max()) + 1))
    return {
        "bins": [round(float(edge), 2) for edge in edges],
        "documents": counts.tolist(),
        "mean": float(degree.mean()),
    }


def _by_rank(graph: NeighbourhoodGraph) -> dict[str, Any]:
    """Return histograms of the weights of the first, tenth, ... neighbour: shared bins, counts by rank."""
    columns = {rank: np.asarray(graph.weights[:, rank - 1], dtype=np.float32) for rank in RANKS if rank <= graph.k}
    self_rows = np.arange(len(graph), dtype=np.uint32)
    columns = {rank: values[np.asarray(graph.edges[:, rank - 1]) != self_rows] for rank, values in columns.items()}
    columns = {rank: values for rank, values in columns.items() if len(values)}
    if not columns:
        return {"bins": [], "documents": {}, "median": {}}
    low, high = min(v.min() for v in columns.values()), max(v.max() for v in columns.values())
    edges = np.linspace(float(low), float(max(high, low + 1e-6)), BINS + 1)
    return {
        "bins": [round(float(edge), 4) for edge in edges],
        "documents": {str(rank): np.histogram(values, bins=edges)[0].tolist() for rank, values in columns.items()},
        "median": {str(rank): round(float(np.median(values)), 4) for rank, values in columns.items()},
    }


def _plot_graph(numbers: dict[str, Any], target: Path) -> Path:
    degrees, similarity = numbers["in_degree"], numbers["similarity_by_rank"]
    with picture(target, 11, 4.2, 2) as (left, right):
        from matplotlib import colormaps

        left.stairs(degrees["documents"], degrees["bins"], fill=True, color=_INK)
        left.axvline(degrees["mean"], color="black", linestyle=":", label=f"mean {degrees['mean']:.0f}")
        left.set(
            xlabel="in-degree: lists that a document is in",
            ylabel="documents",
            title="How often documents are neighbours",
        )
        left.legend(frameon=False)
        shades = colormaps["viridis"](np.linspace(0, 0.9, max(1, len(similarity["documents"]))))
        for shade, (rank, counts) in zip(shades, similarity["documents"].items(), strict=False):
            right.stairs(
                counts,
                similarity["bins"],
                color=shade,
                label=f"neighbour {rank} (median {similarity['median'][rank]:.2f})",
            )
        right.set(
            xlabel="similarity",
            ylabel="documents",
            title=f"How near neighbours are: {numbers['graph']['plan']['encoder']}",
        )
        if similarity["documents"]:  # matplotlib warns of a legend without entries
            right.legend(frameon=False, fontsize=8)
    return target


def _plot_reach(rows: list[dict[str, Any]], depth: int, target: Path) -> Path:
    width = 0.27
    with picture(target, max(6.0, 1.5 * len(rows)), 4.4) as axes:
        for hop, (key, label, colour) in enumerate(_STEPS):
            values = [row[f"recall{key.format(d=depth)}"] for row in rows]
            at = np.arange(len(rows)) + (hop - 1) * width
            axes.bar(at, values, width, color=colour, label=label)
            for x, value, row in zip(at, values, rows, strict=True):
                pool = row[f"pool{key.format(d=depth)}"]
                if hop:  # the control: the same number of documents, all from the first stage
                    same = row[f"recall@same+{hop}"]
                    axes.hlines(same, x - width / 2, x + width / 2, color="black", linewidth=1.5)
                axes.annotate(f"{value:.2f}\n{pool:,.0f}", (x, value + 0.015), ha="center", va="bottom", fontsize=7)
        axes.set_xticks(np.arange(len(rows)), [f"{row['dataset']}\n{row['stage']}" for row in rows], fontsize=8)
        axes.set(ylim=(0, 1.25), ylabel=f"gold documents reachable from the top {depth}")
        axes.set_title("How far hops raise the ceiling (share; below it, documents in the pool)", fontsize=10)
        axes.hlines([], 0, 0, color="black", linewidth=1.5, label="first stage, a list as long")
        axes.legend(frameon=False, ncols=4, loc="upper left", fontsize=8)
    return target

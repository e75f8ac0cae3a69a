"""The rows of ``benchmarks.economy`` as Markdown tables, and its curves as a picture."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from quit.render.plots import MARKS, SERIES


def markdown(rows: Sequence[dict]) -> str:
    """Return tables of the exact mode, the promise, the curves and the benchmark figures."""
    tables = (_exact(rows), _promises(rows), _sizes(rows), _curves(rows), _figures(rows))
    return "\n\n".join("\n".join(table) for table in tables)


def _exact(rows: Sequence[dict]) -> list[str]:
    """Return a line a collection: the best order of its labelers, and how the worst does."""
    lines = _head("collection", "questions", "label 2", "best order", "answers saved", "of what can be", "worst order")
    by_collection = itertools.groupby(_of(rows, "exact"), key=lambda row: row["collection"])
    for name, group in by_collection:
        orders = sorted(group, key=lambda row: row["answers"])
        best, worst = orders[0], orders[-1]
        if best["of_possible"] is not None:
            cells = [f"{best['label_2']:.1%}", ", ".join(best["order"]), f"{1 - best['answers']:.1%}"]
            lines.append(
                _line(name, best["questions"], *cells, *(f"{row['of_possible']:.0%}" for row in (best, worst)))
            )
    return lines


def _promises(rows: Sequence[dict]) -> list[str]:
    """Return a line a collection and promise: what it costs with questions drawn again, and how often it was kept with
    other audits and with questions drawn again."""
    lines = _head("collection", "promised", "audit", "answers asked", "prompt tokens", "to the audit alone",
                  "wrong labels", "expected", "kept")  # fmt: skip
    by_promise: dict[tuple[str, float], dict[str, dict]] = {}
    for row in _of(rows, "promise"):
        by_promise.setdefault((row["collection"], row["promised"]), {})[row["drawn"]] = row
    for (name, promised), drawn in by_promise.items():
        row = drawn["questions"]
        shares = (_percent(row[column]) for column in ("answers", "tokens"))
        factors = f"{row['answers_factor'][0]:.1f}, {row['tokens_factor'][0]:.1f}"
        kept = ", ".join(f"{drawn[again]['kept'][0]:.0%}" for again in ("audits", "questions"))
        first = (name, f"{promised:.0%}", f"{row['audit'][0]:.1%}")
        lines.append(_line(*first, *shares, factors, _percent(row["error"]), f"{row['expected'][0]:.1%}", kept))
    return lines


def _sizes(rows: Sequence[dict]) -> list[str]:
    lines = _head("collection", "questions", "promised", "audit", "passages", "answers", "tokens", "wrong", "s", "MiB")
    for row in _of(rows, "size"):
        shares = (f"{row[name]:.1%}" for name in ("audit", "passages", "answers", "tokens", "error"))
        size = (f"{row['seconds']:.0f}", row["mib"])
        lines.append(_line(row["collection"], row["drawn"], f"{row['promised']:.0%}", *shares, *size))
    return lines


def _curves(rows: Sequence[dict], share: float = 0.1) -> list[str]:
    """Return a line a collection: wrong labels of each method where about a tenth of the passages is asked."""
    curves = _of(rows, "curve")
    methods, names = (list(dict.fromkeys(row[key] for row in curves)) for key in ("method", "collection"))
    lines = _head("collection", *methods)
    for name in names:
        cells = []
        for method in methods:
            points = [row for row in curves if (row["collection"], row["method"]) == (name, method)]
            cells.append(_percent(min(points, key=lambda row: abs(row["passages"][0] - share))["error"]))
        lines.append(_line(name, *cells))
    return lines


def _figures(rows: Sequence[dict]) -> list[str]:
    lines: list[str] = []
    for row in _of(rows, "figures"):
        values = {name: value for name, value in row.items() if isinstance(value, list)}
        lines = lines or _head("collection", "promised", *values)
        cells = (f"{middle:.3f} ({low:.3f} to {high:.3f})" for middle, low, high in values.values())
        lines.append(_line(row["collection"], f"{row['promised']:.0%}", *cells))
    return lines


def _of(rows: Sequence[dict], kind: str) -> list[dict]:
    return [row for row in rows if row["kind"] == kind]


def _head(*titles: str) -> list[str]:
    return [_line(*titles), "|---" * len(titles) + "|"]


def _line(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def _percent(interval: Sequence[float]) -> str:
    return f"{interval[0]:.1%} ({interval[1]:.1%} to {interval[2]:.1%})"


def picture(rows: Sequence[dict], path: Path) -> None:
    """Draw wrong labels by answers asked, a panel a collection: mean, and 5th to 95th percentile."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "quit", "font.size": 9})
    from matplotlib import pyplot

    curves = _of(rows, "curve")
    names, methods = (list(dict.fromkeys(row[key] for row in curves)) for key in ("collection", "method"))
    figure, grid = pyplot.subplots(2, -(-len(names) // 2), figsize=(9, 5.4), sharex=True, sharey=True, squeeze=False)
    for name, axes in itertools.zip_longest(names, grid.flat):
        if name is None:
            axes.set_axis_off()
            continue
        for method, colour, mark in zip(methods, SERIES, MARKS, strict=False):
            points = [row for row in curves if (row["collection"], row["method"]) == (name, method)]
            middle, low, high = (100 * np.array([row["error"][part] for row in points]) for part in range(3))
            axes.errorbar(
                [100 * row["answers"][0] for row in points],
                middle,
                np.maximum([middle - low, high - middle], 0),
                color=colour, marker=mark, markersize=3.5, linewidth=1, elinewidth=0.6, capsize=1.5, label=method,
            )  # fmt: skip
        axes.set(title=name, xscale="log", xlim=(0.7, 50), ylim=(0, 10))
        axes.set_xticks([1, 2, 5, 10, 20, 50], ["1", "2", "5", "10", "20", "50"])
        axes.minorticks_off()
        axes.grid(linewidth=0.3)
    figure.supxlabel("answers asked, % of every labeler's to every passage")
    figure.supylabel("wrong labels, % of the passages")
    grid.flat[0].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})

"""The report's plots as SVG: text stays text, colours follow the page (light or dark), and no two plots share an id.

Colours are those of Okabe and Ito (Color Universal Design, 2008), told apart by the colour-blind too; lines differ in
dashes and marks as well. What is drawn in ink, grid or series colours is written as a CSS variable of
``templates/style.css``.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from quit.errors import MissingDependency

SERIES = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#999933", "#882255")
"""Light-page colours of series 1 to 8: Okabe and Ito's six that can be told from a white page, and two of Tol's
(2021)."""
MARKS, DASHES = "osv^D<>P", ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (6, 3)))
_INK, _GRID = "#010203", "#010205"  # stand for the page's own colours until the plot is on it
_WIDTH = 4.6  # inches: about what a telephone shows, so that text is as large there as on a wide page
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "quit",
    "text.parse_math": False,
    "font.family": "sans-serif",
    "font.size": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    **{f"{name}.color": _INK for name in ("text", "xtick", "ytick")},
    **{f"axes.{name}color": _INK for name in ("edge", "label", "title")},
    "grid.color": _GRID,
    "hatch.linewidth": 0.6,
}


def bars(
    name: str, labels: Sequence[str], series: Mapping[str, Sequence[float]], across: str = "", share: bool = False
) -> str:
    """Draw horizontal bars, one a label, the first at the top, each with its value; several series are stacked.

    ``share``: values are shares of 1, written as percentages. The axis ends a little after the longest bar.
    """

    def draw(axes: Any) -> None:
        places = range(len(labels))
        ends = [0.0] * len(labels)
        for number, (title, values) in enumerate(series.items()):
            axes.barh(places, values, left=ends, color=SERIES[number % 8], label=title, height=0.7)
            ends = [end + value for end, value in zip(ends, values, strict=True)]
        for height, end in zip(places, ends, strict=True):
            axes.annotate(f"{end:.1%}" if share else f"{end:,.0f}", (end, height), (3, 0), textcoords="offset points",
                          va="center", fontsize=8.5)  # fmt: skip
        axes.set_yticks(places, [_short(label) for label in labels])
        axes.set_xlim(0, max(ends, default=1) * 1.18 or 1)
        axes.set_xlabel(across)
        axes.invert_yaxis()
        axes.tick_params(axis="y", length=0)
        _ticks(axes.xaxis, share)
        if len(series) > 1:
            _legend(axes, series)

    return _svg(name, draw, 0.9 + 0.26 * len(labels) + (0.25 if len(series) > 1 else 0))


def histogram(name: str, rows: Sequence[Mapping[str, Any]], groups: Sequence[str], across: str, up: str) -> str:
    """Draw stacked bars over ``rows`` (``low``, ``high`` and a count for each of ``groups``)."""

    def draw(axes: Any) -> None:
        low = [row["low"] for row in rows]
        width = [row["high"] - row["low"] for row in rows]
        ends = [0.0] * len(rows)
        for number, group in enumerate(groups):
            values = [row[group] for row in rows]
            axes.bar(low, values, width=width, bottom=ends, align="edge", color=SERIES[number % 8], label=group,
                     edgecolor=_GRID, linewidth=0.4)  # fmt: skip
            ends = [end + value for end, value in zip(ends, values, strict=True)]
        axes.set_xlim(low[0], rows[-1]["high"])
        axes.set_ylim(0, max(ends) * 1.05 or 1)
        axes.set_xlabel(across)
        axes.set_ylabel(up)
        _ticks(axes.yaxis)
        if len(groups) > 1:
            _legend(axes, groups)

    return _svg(name, draw, 2.7)


def lines(name: str, series: Mapping[str, Mapping[Any, float]], across: str, up: str, most: float | None = None) -> str:
    """Draw a line a series over whole numbers or names; values are shares of 1. ``most``: end of the axis (None: a
    little above the highest value)."""

    def draw(axes: Any) -> None:
        ticks = list(dict.fromkeys(at for points in series.values() for at in points))
        names = any(isinstance(at, str) for at in ticks)
        for number, (title, points) in enumerate(series.items()):
            at = [ticks.index(name) for name in points] if names else list(points)
            axes.plot(at, list(points.values()), color=SERIES[number % 8], marker=MARKS[number % 8],
                      linestyle=DASHES[number % 8], markersize=5, linewidth=1.5, label=title)  # fmt: skip
        if names:
            axes.set_xticks(range(len(ticks)), [_short(at) for at in ticks], rotation=30, ha="right")
        else:
            axes.set_xticks(sorted(ticks))
        axes.set_ylim(0, most or 1.1 * max(max(points.values(), default=0) for points in series.values()) or 1)
        axes.set_xlabel(across)
        axes.set_ylabel(up)
        axes.grid(axis="y", linewidth=0.6)
        _ticks(axes.yaxis, share=True)
        _legend(axes, series)

    rows = len(series) // 2 if _columns(series) > 1 else len(series) - 1
    return _svg(name, draw, 2.7 + 0.18 * rows)


def _ticks(axis: Any, share: bool = False) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0%}" if share else f"{value:,.0f}"))
    axis.set_major_locator(MaxNLocator(5, integer=not share))


def _columns(names: Collection[str]) -> int:
    """Return how many columns the legend has: names that are too long for the width have one."""
    if max(map(len, names), default=0) > 20:
        return 1
    return 2 if len(names) > 3 else len(names)


def _legend(axes: Any, names: Collection[str]) -> None:
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=_columns(names), fontsize=8.5, frameon=False,
                borderaxespad=0.2, handlelength=2.6, columnspacing=1.2)  # fmt: skip


def _short(text: str, most: int = 30) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _svg(name: str, draw: Callable[[Any], None], height: float) -> str:
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingDependency(
            "The report's plots need matplotlib. Run: pip install -c constraints.txt -e '.[plots]'"
        ) from error
    # The user's own matplotlibrc must not change the report.
    with matplotlib.rc_context({**matplotlib.rcParamsDefault, **_STYLE}), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a letter that the measuring font lacks: the browser has it
        figure = Figure(figsize=(_WIDTH, height), layout="constrained")
        figure.patch.set_alpha(0)
        axes = figure.subplots()
        axes.patch.set_alpha(0)
        draw(axes)
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return _for_the_page(out.getvalue(), name)


def _for_the_page(svg: str, name: str) -> str:
    """Return the ``<svg>`` element alone, sized by the page, in its colours, with ids of its own."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>|<defs>\s*<style.*?</style>\s*</defs>", "", svg, flags=re.S)
    opening = re.match(r"<svg[^>]*>", svg)
    box = re.search(r'viewBox="([^"]*)"', svg)
    assert opening and box
    # Only tags are rewritten: text is data.
    body = re.sub(r"<[^>]*>", lambda tag: _tag(tag.group(), name), svg[opening.end() :])
    return f'<svg viewBox="{box.group(1)}" role="img" aria-labelledby="{name}-title">{body.rstrip()}'


def _tag(tag: str, name: str) -> str:
    tag = re.sub(r"font-family: [^;\"]*; ", "", tag)
    tag = re.sub(r'\bid="', f'id="{name}-', tag)
    tag = re.sub(r'\b(?:xlink:)?href="#', f'href="#{name}-', tag)
    tag = tag.replace("url(#", f"url(#{name}-")
    for colour, variable in (
        (_INK, "ink"),
        (_GRID, "grid"),
        *((series, f"s{at}") for at, series in enumerate(SERIES, 1)),
    ):
        tag = re.sub(rf"{colour}\b", f"var(--{variable})", tag, flags=re.I)
    return tag

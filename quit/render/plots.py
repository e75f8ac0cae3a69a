"""Plots: SVG for a page, and PNG files for the curves of an experiment.

In SVG text stays text, colours follow the page (light or dark), and no two plots share an id. A colour has one
meaning on a page: splits and bins of difficulty have colours of their own, and other lines are drawn in the remaining
ones. They are colours of Okabe and Ito (Color Universal Design, 2008), which the colour-blind can tell apart; lines
differ in dashes and marks as well. All are CSS variables of ``templates/style.css``: ``s1`` to ``s6`` are those of
lines, Okabe and Ito's that can be told from a white page, and three of Tol's (2021); of the bins, the darker, the
harder; ``bar`` and ``rest`` those of other bars.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from quit.common.extras import importing
from quit.common.files import replacing, writing

MARKS, DASHES = "osv^D<>P", ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (6, 3)))
VARIABLES = "ink grid train dev test easy medium hard bar rest s1 s2 s3 s4 s5 s6".split()
_COLOURS = {name: f"#0101{number:02x}" for number, name in enumerate(VARIABLES)}
"""What is drawn in place of each variable until the plot is on the page."""
_NAMED = {"all": "ink", **{name: name for name in ("train", "dev", "test", "easy", "medium", "hard")}}
_BARS, _LINES = ("bar", "rest"), ("s1", "s2", "s3", "s4", "s5", "s6")
_WIDTH = 4.6  # inches: about what a telephone shows, so that text is as large there as on a wide page
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "quit",
    "text.parse_math": False,
    "font.family": "sans-serif",
    "font.size": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    **{f"{name}.color": _COLOURS["ink"] for name in ("text", "xtick", "ytick")},
    **{f"axes.{name}color": _COLOURS["ink"] for name in ("edge", "label", "title")},
    "grid.color": _COLOURS["grid"],
    "hatch.linewidth": 0.6,
}


def bars(
    name: str, labels: Sequence[str], series: Mapping[str, Sequence[float]], across: str = "", share: bool = False
) -> str:
    """Draw horizontal bars, one per label, the first at the top, each with its value; several series are stacked.

    ``share``: values are shares of 1, written as percentages. The axis ends after the longest bar, at a round number.
    """

    def draw(axes: Any) -> None:
        places = range(len(labels))
        ends = [0.0] * len(labels)
        for number, (title, values) in enumerate(series.items()):
            axes.barh(places, values, left=ends, color=_colour(title, number, _BARS), label=title, height=0.7)
            ends = [end + value for end, value in zip(ends, values, strict=True)]
        for height, end in zip(places, ends, strict=True):
            axes.annotate(f"{end:.1%}" if share else f"{end:,.0f}", (end, height), (3, 0), textcoords="offset points",
                          va="center", fontsize=8.5)  # fmt: skip
        axes.set_yticks(places, [_short(label) for label in labels])
        axes.set_xlim(0, 1.12 * _ticks(axes.xaxis, max(ends, default=0), share))  # the last value has room
        axes.set_xlabel(across)
        axes.invert_yaxis()
        axes.tick_params(axis="y", length=0)
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
            axes.bar(low, values, width=width, bottom=ends, align="edge", color=_colour(group, number, _BARS),
                     label=group, edgecolor=_COLOURS["grid"], linewidth=0.4)  # fmt: skip
            ends = [end + value for end, value in zip(ends, values, strict=True)]
        axes.set_xlim(low[0], rows[-1]["high"])
        axes.set_ylim(0, _ticks(axes.yaxis, max(ends)))
        axes.set_xlabel(across)
        axes.set_ylabel(up)
        if len(groups) > 1:
            _legend(axes, groups)

    return _svg(name, draw, 2.7)


def lines(name: str, series: Mapping[str, Mapping[Any, float]], across: str, up: str, end: float | None = None) -> str:
    """Draw a line per series over whole numbers or names; values are shares of 1. ``end``: of the axis (None: the round
    number above the highest value)."""

    def draw(axes: Any) -> None:
        ticks = list(dict.fromkeys(at for points in series.values() for at in points))
        names = any(isinstance(at, str) for at in ticks)
        for number, (title, points) in enumerate(series.items()):
            at = [ticks.index(name) for name in points] if names else list(points)
            mark, dash = MARKS[number % len(MARKS)], DASHES[number % len(DASHES)]
            axes.plot(at, list(points.values()), color=_colour(title, number, _LINES), marker=mark, clip_on=False,
                      linestyle=dash, markersize=5, linewidth=1.5, label=title)  # fmt: skip
        if names:
            axes.set_xticks(range(len(ticks)), [_short(at) for at in ticks], rotation=30, ha="right")
        else:
            axes.set_xticks(sorted(ticks))
        highest = end or max(max(points.values(), default=0) for points in series.values())
        axes.set_ylim(0, _ticks(axes.yaxis, highest, share=True))
        axes.set_xlabel(across)
        axes.set_ylabel(up)
        axes.grid(axis="y", linewidth=0.6)
        _legend(axes, series)

    rows = len(series) // 2 if _columns(series) > 1 else len(series) - 1
    return _svg(name, draw, 2.7 + 0.18 * rows)


def _colour(title: str, number: int, others: Sequence[str]) -> str:
    return _COLOURS[_NAMED.get(title, others[number % len(others)])]


def _ticks(axis: Any, highest: float, share: bool = False) -> float:
    """Set about five ticks in steps of 1, 2 or 5 from 0 to the first at or above ``highest``; return that one."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, PercentFormatter

    locator = MaxNLocator(5, steps=[1, 2, 5, 10], integer=not share)
    ticks = [tick for tick in locator.tick_values(0, highest or 1) if tick >= 0]
    axis.set_major_locator(FixedLocator(ticks))
    if share:
        decimals = 0 if ticks[1] - ticks[0] >= 0.01 else None
        axis.set_major_formatter(PercentFormatter(1, decimals))
    else:
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    return ticks[-1]


def _columns(names: Collection[str]) -> int:
    """Return how many columns the legend has: names that are too long for the width have one."""
    if max(map(len, names), default=0) > 20:
        return 1
    return 2 if len(names) > 3 else len(names)


def _legend(axes: Any, names: Collection[str]) -> None:
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=_columns(names), fontsize=8.5, frameon=False,
                borderaxespad=0.2, handlelength=2.6, columnspacing=1.2)  # fmt: skip


def _short(text: str, max_letters: int = 30) -> str:
    return text if len(text) <= max_letters else text[: max_letters - 1] + "…"


@contextmanager
def _figure(what: str, width: float, height: float, style: dict[Any, Any]) -> Iterator[Any]:
    """Yield an empty figure of so many inches, which the user's own matplotlibrc does not change. Raises
    :class:`MissingDependency` without matplotlib; ``what``: what needs it."""
    with importing(what):
        import matplotlib
        from matplotlib.figure import Figure
    with matplotlib.rc_context({**matplotlib.rcParamsDefault, **style}):
        yield Figure(figsize=(width, height), layout="constrained")


def _svg(name: str, draw: Callable[[Any], None], height: float) -> str:
    with _figure("The report", _WIDTH, height, _STYLE) as figure, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a letter that the measuring font lacks: the browser has it
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
    return re.sub(r"#0101([0-9a-f]{2})\b", lambda colour: f"var(--{VARIABLES[int(colour[1], 16)]})", tag)


@contextmanager
def picture(target: Path, width: float, height: float) -> Iterator[Any]:
    """Yield the axes of a picture of so many inches; written to ``target`` on leaving.

    Raises :class:`MissingDependency` without matplotlib, :class:`quit.errors.WorkspaceError` when the disk refuses.
    """
    with _figure("A plot", width, height, {}) as figure:
        yield figure.subplots()
        with writing(target), replacing(target) as temporary:
            figure.savefig(temporary, format="png", dpi=130, metadata={"Software": None})

"""The leaderboard: one HTML page without scripts or addresses. Everything that is not ours is escaped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
from markupsafe import Markup

from quit.common.rows import grouped
from quit.errors import MissingDependency
from quit.evaluate.circularity import Circularity
from quit.qa.benchmark.plugins import ORACLE
from quit.render import plots
from quit.render.html import environment, template_text
from quit.render.table import Plot, Table, number

_FIGURES = {
    "4 left": ("Hit@k by corpus, label 2 (the paper's figure 4, left)", "k", "Hit@k"),
    "4 right": ("Hit over the relevant passages found (figure 4, right)", "passages of label 2 retrieved", "Hit"),
    "5": ("EM by system and reader (figure 5)", "", "EM"),
    "6": ("Passages with a correct answer by number of hints (figure 6)", "hints in the passage", "share of passages"),
}
_COMPARED = ("corpus", "metric", "reader", "a", "b", "a - b, points", "p, randomisation", "p, t test", "p, Holm")


def page(
    facts: Mapping[str, str], results: pa.Table, comparisons: pa.Table, figures: pa.Table, circular: Circularity
) -> str:
    """Return the page. ``facts``: what was run, in words; the next three: the tables of these names; ``circular``:
    which models are marked."""
    tables = grouped(((row["corpus"], row["reader"]), row) for row in results.to_pylist())
    templates = environment()
    templates.filters["as_text"] = as_text
    return templates.get_template("leaderboard.html").render(
        facts=facts,
        circular=circular,
        tables=[_table(*names, rows) for names, rows in tables.items()],
        figures=list(_plots(figures.to_pylist())),
        compared=_comparisons(comparisons.to_pylist()),
        style=Markup(template_text("style.css")),
    )


class SystemTable(NamedTuple):
    """The ``systems`` of a corpus and reader, by ``names``, with their rows by metric. ``best``: each metric's highest
    value of those that are no bound."""

    title: str
    names: tuple[str, ...]
    systems: Mapping[tuple[object, ...], Mapping[str, Mapping[str, Any]]]
    best: Mapping[str, float]


def _table(corpus: str, reader: str, rows: Sequence[Mapping[str, Any]]) -> SystemTable:
    names = ("retriever", "reranker", *(("strategy", "k") if reader else ()))
    systems: dict[tuple[object, ...], dict[str, Mapping[str, Any]]] = {}
    best: dict[str, float] = {}
    for row in rows:
        key, metric = tuple(row[name] for name in names), row["metric"]
        systems.setdefault(key, {})[metric] = row
        best[metric] = max(best.get(metric, 0.0), 0.0 if ORACLE in key else row["value"])
    title = f"Reader {reader}: {corpus}" if reader else f"Retrieval and reranking: {corpus}"
    return SystemTable(title, names, systems, best)


def _plots(rows: Sequence[Mapping[str, Any]]) -> Iterable[Plot]:
    """Yield figures 4 to 6, each with its table; figure 6 once per reader. Without matplotlib the tables alone."""
    pieces = grouped(((row["figure"], row["reader"] if row["figure"] == "6" else ""), row) for row in rows)
    for place, ((figure, reader), points) in enumerate(pieces.items()):
        title, across, up = _FIGURES[figure]
        lines: dict[str, dict[Any, float]] = {}
        for row in _most_often_right(points) if figure == "6" else points:
            at = as_text(row["x"]) if figure == "5" else int(row["x"])
            lines.setdefault(row["line"], {})[at] = row["y"]
        name, svg, note = f"figure-{place}", "", ""
        try:
            svg = plots.lines(name, lines, across, up, end=None if figure == "5" else 1)
        except MissingDependency as error:
            note = str(error)
        heads = list(dict.fromkeys(at for points in lines.values() for at in points))
        cells = [
            [line, *(f"{100 * points[at]:.2f}" if at in points else "" for at in heads)]
            for line, points in lines.items()
        ]
        yield Plot(f"{title}: {reader}" if reader else title, ["", *heads], cells, note=note, name=name, svg=svg)


def _most_often_right(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the rows of one system for each setting of figure 6: that from which the reader is right most often."""
    totals: dict[str, Counter[str]] = {}
    for row in rows:
        totals.setdefault(row["line"], Counter())[f"{row['retriever']} + {row['reranker']}"] += row["passages"]
    best = {line: systems.most_common(1)[0][0] for line, systems in totals.items()}
    return [row for row in rows if best[row["line"]] == f"{row['retriever']} + {row['reranker']}"]


def _comparisons(rows: Iterable[Mapping[str, Any]]) -> Table:
    cells = []
    for row in rows:
        systems = (as_text(row["a"]), as_text(row["b"]))
        difference = f"{100 * row['difference']:+.2f} ({100 * row['low']:+.2f} to {100 * row['high']:+.2f})"
        p_values = [number(row[name], ".4f") for name in ("p_randomisation", "p_t", "p_holm")]
        cells.append([row["corpus"], row["metric"], row["reader"], *systems, difference, *p_values])
    return Table("Paired comparisons", _COMPARED, cells, text=(1, 2, 3, 4))


def as_text(value: object) -> str:
    """Return a name for people: of a model's folder its last part."""
    return " + ".join(_short(part) for part in str(value).split(" + "))


def _short(text: str) -> str:
    name, colon, argument = text.partition(":")
    return f"{name}:{argument.rstrip('/').rpartition('/')[2]}" if colon else text

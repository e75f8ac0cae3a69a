"""The leaderboard: one HTML page without scripts or addresses. Everything that is not ours is escaped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

import pyarrow as pa

from quit.errors import MissingDependency
from quit.render import plots

_SERIES = "".join(f"--s{number}:{colour};" for number, colour in enumerate(plots.SERIES, start=1))
_STYLE = f":root{{--ink:#1c1c1c;--grid:#ddd;{_SERIES}}}"
_STYLE += """
figure{margin:1rem 0;max-width:40rem}figcaption{font-weight:600}
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:84rem;padding:0 1rem;color:#1c1c1c;background:#fff}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}p.note{color:#555;max-width:60rem}
.wide{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums}
th,td{padding:.25rem .6rem;border-bottom:1px solid #ddd;text-align:right;white-space:nowrap}
th{vertical-align:bottom;font-weight:600}td.name,th.name{text-align:left}
td small{color:#777;display:block;font-size:.72rem}td.best{font-weight:700}tr.bound td{color:#777;font-style:italic}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.1rem 1rem}dt{color:#555}dd{margin:0;overflow-wrap:anywhere}
"""
_FIGURES = {
    "4 left": ("Hit@k by corpus, label 2 (the paper's figure 4, left)", "k", "Hit@k"),
    "4 right": ("Hit over the relevant passages found (figure 4, right)", "passages of label 2 retrieved", "Hit"),
    "5": ("EM by system and reader (figure 5)", "", "EM"),
    "6": ("Passages with a correct answer by number of hints (figure 6)", "hints in the passage", "share of passages"),
}


def page(facts: Mapping[str, str], results: pa.Table, comparisons: pa.Table, figures: pa.Table, level: float) -> str:
    """Return the page. ``facts``: what was run, in words; the other three: the tables of these names."""
    rows = results.to_pylist()
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>",
        f"<title>Inferential QA benchmark</title><style>{_STYLE}</style><h1>Inferential QA benchmark</h1><dl>",
        *(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts.items()),
        "</dl>",
        f"<p class=note>Percent; below each value its {level:.0%} bootstrap interval over questions. The best system "
        "of a column is bold; rows in italics are bounds that know the labels (oracle) and are not systems. Gain of "
        "nDCG: the label, as in trec_eval; of nDCG(exp): 2^label - 1, as in the QUIT paper.</p>",
    ]
    for corpus in dict.fromkeys(row["corpus"] for row in rows):
        mine = [row for row in rows if row["corpus"] == corpus]
        parts.append(f"<h2>Retrieval and reranking: {escape(corpus)}</h2>")
        ranked = [row for row in mine if not row["reader"]]
        parts.append(_table(ranked, ("retriever", "reranker")))
        for reader in dict.fromkeys(row["reader"] for row in mine if row["reader"]):
            parts.append(f"<h2>Reader {escape(reader)}: {escape(corpus)}</h2>")
            parts.append(
                _table([row for row in mine if row["reader"] == reader], ("retriever", "reranker", "strategy", "k"))
            )
    parts.append(_drawn(figures.to_pylist()))
    parts.append(_compared(comparisons.to_pylist()))
    return "\n".join(parts) + "\n"


def _table(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> str:
    metrics = list(dict.fromkeys(row["metric"] for row in rows))
    systems: dict[tuple[Any, ...], dict[str, Mapping[str, Any]]] = {}
    for row in rows:
        systems.setdefault(tuple(row[name] for name in names), {})[row["metric"]] = row
    best = {
        metric: max(
            (row_of[metric]["value"] for key, row_of in systems.items() if metric in row_of and not _bound(key)),
            default=None,
        )
        for metric in metrics
    }
    head = "".join(f"<th class=name>{escape(name)}" for name in names) + "".join(
        f"<th>{escape(metric_name)}" for metric_name in metrics
    )
    body = []
    for key, row_of in systems.items():
        cells = "".join(f"<td class=name>{escape(shown(part))}" for part in key)
        for metric in metrics:
            cell = row_of.get(metric)
            if cell is None:
                cells += "<td>"
                continue
            mark = " class=best" if not _bound(key) and cell["value"] == best[metric] and cell["value"] > 0 else ""
            cells += (
                f"<td{mark}>{_percent(cell['value'])}<small>{_percent(cell['low'])} to {_percent(cell['high'])}</small>"
            )
        body.append(f"<tr{' class=bound' if _bound(key) else ''}>{cells}")
    return f"<div class=wide><table><tr>{head}{''.join(body)}</table></div>"


def _drawn(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return figures 4 to 6, each with its table; figure 6 once a reader. Without matplotlib the tables alone."""
    pieces: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        pieces.setdefault((row["figure"], row["reader"] if row["figure"] == "6" else ""), []).append(row)
    made = []
    for number, ((figure, reader), points) in enumerate(pieces.items()):
        title, across, up = _FIGURES[figure]
        lines: dict[str, dict[Any, float]] = {}
        for row in _most_often_right(points) if figure == "6" else points:
            at = shown(row["x"]) if figure == "5" else int(row["x"])
            lines.setdefault(row["line"], {})[at] = row["y"]
        try:
            svg = plots.lines(f"figure-{number}", lines, across, up, most=None if figure == "5" else 1)
        except MissingDependency as error:
            svg = f"<p class=note>{escape(str(error))}</p>"
        title = escape(f"{title}: {reader}" if reader else title)
        made.append(f'<figure><figcaption id="figure-{number}-title">{title}</figcaption>{svg}')
        made.append(f"<details><summary>Table</summary>{_points(lines)}</details></figure>")
    return "<h2>Figures</h2>" + "".join(made) if made else ""


def _most_often_right(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the rows of one system for each setting of figure 6: that from which the reader is right most often."""
    totals: dict[str, Counter[str]] = {}
    for row in rows:
        totals.setdefault(row["line"], Counter())[f"{row['retriever']} + {row['reranker']}"] += row["passages"]
    best = {line: systems.most_common(1)[0][0] for line, systems in totals.items()}
    return [row for row in rows if best[row["line"]] == f"{row['retriever']} + {row['reranker']}"]


def _points(lines: Mapping[str, Mapping[Any, float]]) -> str:
    across = list(dict.fromkeys(at for points in lines.values() for at in points))
    head = "".join(f"<th>{escape(str(at))}" for at in across)
    body = "".join(
        f"<tr><td class=name>{escape(line)}"
        + "".join(f"<td>{_percent(points[at])}" if at in points else "<td>" for at in across)
        for line, points in lines.items()
    )
    return f"<div class=wide><table><tr><th class=name>{head}{body}</table></div>"


def _compared(rows: Iterable[Mapping[str, Any]]) -> str:
    listed = [
        f"<tr><td class=name>{escape(row['corpus'])}<td class=name>{escape(row['metric'])}"
        f"<td class=name>{escape(row['reader'])}<td class=name>{escape(shown(row['a']))}"
        f"<td class=name>{escape(shown(row['b']))}"
        f"<td>{100 * row['difference']:+.2f}<small>{100 * row['low']:+.2f} to {100 * row['high']:+.2f}</small>"
        f"<td>{row['p_randomisation']:.4f}<td>{row['p_t']:.4f}<td>{row['p_holm']:.4f}"
        for row in rows
    ]
    if not listed:
        return ""
    head = "<th class=name>corpus<th class=name>metric<th class=name>reader<th class=name>a<th class=name>b"
    head += "<th>a - b, points<th>p, randomisation<th>p, t test<th>p, Holm"
    return f"<h2>Paired comparisons</h2><div class=wide><table><tr>{head}{''.join(listed)}</table></div>"


def shown(value: Any) -> str:
    """Return a name for people: of a model's folder its last part."""
    text = str(value)
    return " + ".join(_short(part) for part in text.split(" + "))


def _short(text: str) -> str:
    name, colon, argument = text.partition(":")
    return f"{name}:{argument.rstrip('/').rpartition('/')[2]}" if colon else text


def _bound(key: Sequence[Any]) -> bool:
    return "oracle" in key


def _percent(value: float) -> str:
    return f"{100 * value:.2f}"

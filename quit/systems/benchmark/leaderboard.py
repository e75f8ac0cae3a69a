"""The leaderboard: one HTML page without scripts or addresses. Everything that is not ours is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

import pyarrow as pa

_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:84rem;padding:0 1rem;color:#1c1c1c;background:#fff}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}p.note{color:#555;max-width:60rem}
.wide{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums}
th,td{padding:.25rem .6rem;border-bottom:1px solid #ddd;text-align:right;white-space:nowrap}
th{vertical-align:bottom;font-weight:600}td.name,th.name{text-align:left}
td small{color:#777;display:block;font-size:.72rem}td.best{font-weight:700}tr.bound td{color:#777;font-style:italic}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.1rem 1rem}dt{color:#555}dd{margin:0;overflow-wrap:anywhere}
"""


def page(facts: Mapping[str, str], results: pa.Table, comparisons: pa.Table, level: float) -> str:
    """Return the page. ``facts``: what was run, in words; the other two: the tables of these names."""
    rows = results.to_pylist()
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>",
        f"<title>Inferential QA benchmark</title><style>{_STYLE}</style><h1>Inferential QA benchmark</h1><dl>",
        *(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts.items()),
        "</dl>",
        f"<p class=note>Percent; below each value its {level:.0%} bootstrap interval over questions. The best system "
        "of a column is bold; rows in italics are bounds that know the labels (oracle) and are no systems.</p>",
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

"""Recall of a first stage, and of the hops of a graph: the bounded-recall argument of neighbourhood-aware retrieval.

A document outside a first stage's list can never be read, however good the re-ranker: recall at depth 100 is a ceiling.
One hop adds the neighbours of the documents in the list, two hops their neighbours; both say how far the ceiling rises.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from quit.common.rows import grouped
from quit.errors import InputError, did_you_mean
from quit.evaluate.metrics import Measure
from quit.qa.corpora.graph import NeighbourhoodGraph
from quit.qa.indexes.built import BuiltCorpus, query_set
from quit.render.table import Table
from quit.retrieval.protocols import FirstStage

SHALLOW = 10
_NDCG = Measure("nDCG", SHALLOW)
DEPTH, WIDTH = 100, 10
"""Documents of a first stage from which hops start, and neighbours per document that count as one hop."""
STEP = 64


def reach(
    corpus: BuiltCorpus,
    name: str,
    stage: FirstStage,
    graph: NeighbourhoodGraph | None,
    kind: str | None = None,
    count: int | None = None,
) -> list[dict[str, Any]]:
    """Return one row per query set: mean nDCG at 10, recall at 10 and at :data:`DEPTH`, after one and two hops, and
    what hops cost. ``kind``: only queries of this type of the source; ``count``: the first so many of each set.

    A row has ``dataset``, ``stage``, ``queries``, ``nDCG@10``, and of each pool of documents ``recall@``, ``all@`` (the
    share of queries with every relevant document in it) and ``pool@`` (its mean size). Pools are the first documents of
    the list, ``10`` and ``depth``; with a graph what one and two hops make reachable from these, the list included,
    ``depth+1`` and ``depth+2``, and the control ``same+1`` and ``same+2``: the first stage's own lists of that length.
    Queries without a relevant document are left out, and of BEIR's data (ArguAna) the document that has the query's own
    id, as its tools do.
    Raises :class:`InputError` where no query is of the ``kind``.
    """
    relevant = corpus.relevant_rows()
    rows = [row for row in corpus.queries.to_pylist() if row["query_id"] in relevant]
    sources = {row["query_id"]: corpus.rows_by_id.get(row["record_id"], -1) for row in rows if row["source"] == "beir"}
    groups = grouped((query_set(row), (row["query_id"], row["text"])) for row in rows if kind in (None, row["kind"]))
    if kind is not None and not groups:
        kinds = sorted({row["kind"] for row in rows} - {None})
        advice = did_you_mean(kind, kinds) if kinds else " Leave --kind out: this corpus has none."
        raise InputError(f"No question with a relevant document is of the kind {kind!r}.{advice}")
    figures = {key: _measure(stage, queries[:count], relevant, sources, graph) for key, queries in groups.items()}
    return [{"dataset": key, "stage": name, **row} for key, row in figures.items()]


def _measure(
    stage: FirstStage,
    queries: list[tuple[str, str]],
    relevant: dict[str, dict[int, int]],
    sources: dict[str, int],
    graph: NeighbourhoodGraph | None,
) -> dict[str, Any]:
    depth = DEPTH
    shares: dict[str, list[float]] = {}
    for start in range(0, len(queries), STEP):
        batch = queries[start : start + STEP]
        longest = max(depth, SHALLOW)
        rankings = stage.search([text for _, text in batch], longest + 1)
        for (query, text), ranking in zip(batch, rankings, strict=True):
            rows = ranking.rows[ranking.rows != sources.get(query, -1)][:longest]
            grades = relevant[query]
            gold = np.array(sorted(grades), dtype=np.int64)
            ranked = [grades.get(row, 0) for row in rows[:SHALLOW].tolist()]
            shares.setdefault(str(_NDCG), []).append(_NDCG.value(ranked, list(grades.values())))
            pools = {f"@{SHALLOW}": rows[:SHALLOW], f"@{depth}": rows[:depth]}
            if graph is not None:
                pools |= hops(graph, rows[:depth], WIDTH, f"@{depth}")
                # The control: what the first stage itself finds when it may list as many documents.
                deep = stage.search([text], max(map(len, pools.values())))[0].rows
                pools |= {f"@same{way}": deep[: len(pools[f"@{depth}{way}"])] for way in ("+1", "+2")}
            for key, pool in pools.items():
                share = float(np.isin(gold, pool).mean())
                shares.setdefault(f"recall{key}", []).append(share)
                shares.setdefault(f"all{key}", []).append(float(share == 1.0))
                shares.setdefault(f"pool{key}", []).append(float(len(pool)))
    return {
        "queries": len(queries),
        **{key: round(float(np.mean(values)), 4) for key, values in sorted(shares.items())},
    }


def hops(graph: NeighbourhoodGraph, rows: np.ndarray, width: int, name: str) -> dict[str, np.ndarray]:
    """Return the documents within one and two hops of some documents, themselves among them: ``{name}+1``,
    ``{name}+2``.

    ``rows``: int64. ``width``: neighbours per document that count (fewer where the graph stores fewer).
    """
    width = min(width, graph.k)
    first = np.unique(np.concatenate([rows, _neighbours(graph, rows, width)]))
    second = np.unique(np.concatenate([first, _neighbours(graph, first, width)]))
    return {f"{name}+1": first, f"{name}+2": second}


def _neighbours(graph: NeighbourhoodGraph, rows: np.ndarray, width: int) -> np.ndarray:
    # Padding names the document itself, which is in the pool already.
    return np.asarray(graph.edges[rows, :width], dtype=np.int64).ravel()


def reach_table(rows: Sequence[dict[str, Any]]) -> Table:
    """Return the rows for people: mean documents as whole numbers, shares with three digits."""
    hidden = ("pool@same", "all@same")
    names = dict.fromkeys(key for row in rows for key in row)
    columns = [name for name in names if ("+" in name or "pool@" not in name) and not name.startswith(hidden)]
    note = "" if rows else "No query (of this --kind) has a relevant document: there is nothing to measure."
    return Table("", columns, [[_cell(name, row.get(name, "")) for name in columns] for row in rows], (1,), note)


def _cell(name: str, value: object) -> object:
    if isinstance(value, float):
        return f"{value:.0f}" if name.startswith("pool") else f"{value:.3f}"
    return value

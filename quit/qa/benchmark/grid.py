"""The grid of Union_freq's weights (paper, section 5.4, footnote 13): EM on the dev split for each alpha and beta.

Only the ratio of the two changes an order, so beta is 1 - alpha. One passage gives one context whatever the weights, so
k = 1 is left out. A context that several weights give is read once.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from quit.common.rows import grouped
from quit.errors import SettingsError
from quit.evaluate.metrics import answer_value
from quit.qa.benchmark.benchmark import BenchmarkRequest, prepare, systems_of
from quit.qa.benchmark.contexts import ContextKind
from quit.qa.benchmark.reading import read_contexts
from quit.qa.contracts.benchmark import GRID
from quit.qa.experiment import write_table
from quit.qa.settings import QaSettings


def run_grid(request: BenchmarkRequest, settings: QaSettings, out: Path) -> pa.Table:
    """Return the table ``grid`` of every system, reader and k above 1, and write it to ``out/grid.parquet``.

    Raises as :func:`quit.qa.benchmark.benchmark.run_benchmark`, and ``SettingsError`` without a reader or a k
    above 1.
    """
    sizes = [k for k in settings.benchmark.k if k > 1]
    if not request.readers or not sizes:
        raise SettingsError("The grid needs at least one --reader, and a k above 1 in benchmark.k.")
    weights = [(alpha, round(1 - alpha, 6)) for alpha in dict.fromkeys(settings.benchmark.grid)]
    limit = settings.benchmark.freq_sentences
    kinds = [ContextKind("freq", k, alpha, beta, limit) for k in sizes for alpha, beta in weights]
    rows: list[dict[str, Any]] = []
    with prepare(request, settings, out) as (runner, task):
        for system in systems_of(runner, task, request):
            for reader in dict.fromkeys(request.readers):
                for kind, answers in zip(kinds, read_contexts(runner, system, reader, kinds), strict=True):
                    pairs = zip(answers, task.queries, strict=True)
                    matches = [answer_value("EM", answer, query.answers) for answer, query in pairs]
                    names = {"retriever": system.retriever, "reranker": system.reranker, "reader": reader}
                    value = {"value": float(np.mean(matches)), "questions": len(matches)}
                    point = {"k": kind.k, "alpha": kind.alpha, "beta": kind.beta}
                    rows.append({"corpus": task.name, **names, **point, **value})
        table = GRID.from_rows(rows)
        write_table(out / "grid.parquet", table)
    return table


def means(table: pa.Table) -> list[dict[str, float]]:
    """Return alpha, beta and the mean EM over all systems, readers and k, best first; ties keep the grid's order."""
    values = grouped(((row["alpha"], row["beta"]), row["value"]) for row in table.to_pylist())
    means = [{"alpha": alpha, "beta": beta, "EM": float(np.mean(of))} for (alpha, beta), of in values.items()]
    return sorted(means, key=lambda row: -row["EM"])

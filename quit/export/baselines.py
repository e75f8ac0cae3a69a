"""Baseline figures for the dataset card: the results of ``quit benchmark run`` on the same release."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quit.errors import InputError

METRICS = ("Hit(rel=2)@1", "Hit(rel=2)@10", "MRR(rel=2)@100", "nDCG@10", "EM", "F1")
"""Metrics of a card's table, where a benchmark has them."""


@dataclass(frozen=True)
class Baselines:
    """``questions``: which ones, in words. ``rows``: system (retriever, reranker, reader with its number of passages)
    -> metric -> mean, 0 to 1, in the benchmark's order."""

    questions: str
    rows: Mapping[str, Mapping[str, float]]


def read_baselines(folder: Path, content_id: str | None) -> Baselines:
    """Return the results in a folder of ``quit benchmark run``.

    Of a reader only the rows with most passages count; the bounds that know the labels keep the name ``oracle``. Raises
    ``InputError`` for a folder without results, damaged ones, or those of another release than ``content_id``.
    """
    try:
        described = json.loads((folder / "run.json").read_text(encoding="utf-8"))["facts"]
        results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
        release, missing = str(described["release"]), str(described["without a relevant passage"])
        questions = f"{described['questions']}; one without a relevant passage {missing}"
        rows = _rows([row for row in results if row["corpus"] == "release"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{folder} holds no results of quit benchmark run ({error!r}): name the folder of its --out."
        ) from error
    if not content_id or content_id not in release:
        raise InputError(
            f"The benchmark in {folder} ran on the release {release}, not on this"
            f" {f'one (content id {content_id})' if content_id else 'workspace: name a release'}."
        )
    return Baselines(questions, rows)


def _rows(results: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    deepest = max((row["k"] for row in results if row["strategy"] != "any"), default=0)
    rows: dict[str, dict[str, float]] = {}
    for row in results:
        if row["metric"] not in METRICS or (row["reader"] and row["strategy"] != "any" and row["k"] != deepest):
            continue
        system = row["retriever"] + (f" + {row['reranker']}" if row["reranker"] else "")
        if row["reader"]:
            context = "each passage alone" if row["strategy"] == "any" else f"{row['k']} passages, {row['strategy']}"
            system += f" + {row['reader']} ({context})"
        rows.setdefault(system, {})[row["metric"]] = float(row["value"])
    return rows

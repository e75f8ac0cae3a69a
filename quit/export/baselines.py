"""Results of ``quit benchmark run`` on the dataset of a card."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quit.errors import InputError
from quit.evaluate.circularity import Circularity
from quit.evaluate.metrics import POLICIES

METRICS = ("Hit(rel=2)@1", "Hit(rel=2)@10", "MRR(rel=2)@100", "nDCG@10", "EM", "F1")
"""Metrics of a card's table, where a benchmark has one of them; else its first."""


@dataclass(frozen=True)
class Baselines:
    """``questions``: which ones, in words. ``rows``: system (retriever, reranker, reader with its number of passages)
    -> metric -> mean, 0 to 1, in the benchmark's order. ``circular``: which models are marked."""

    questions: str
    rows: Mapping[str, Mapping[str, float]]
    circular: Circularity


def read_baselines(folder: Path, content_id: str | None) -> Baselines:
    """Return the results in a folder of ``quit benchmark run``.

    Of a reader only the rows with most passages count; the bounds that know the labels keep the name ``oracle``. Raises
    ``InputError`` for a folder without results, damaged ones, or those of another release than ``content_id``.
    """
    try:
        run = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        facts, circular = run["facts"], Circularity(**run["circular"])
        results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
        release, without_relevant = facts["release"], POLICIES[run["settings"]["without_relevant"]]
        questions = f"{facts['questions']}; one without a relevant passage {without_relevant}"
        is_of_release = content_id is not None and run["content_id"] == content_id
        rows = _rows(results, circular)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{folder} holds no results of quit benchmark run, or damaged ones: name the folder of its --out."
        ) from error
    if not is_of_release:
        raise InputError(
            f"The benchmark in {folder} ran on the release {release}, not on this "
            f"{f'one (content id {content_id})' if content_id else 'workspace: name a release'}."
        )
    return Baselines(questions, rows, circular)


def with_largest_k(results: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return rows of ``results`` (columns reader, strategy, k): of what readers say to several passages, only those
    with the most passages."""
    largest = max((row["k"] for row in results if row["strategy"] != "any"), default=0)
    return [row for row in results if not row["reader"] or row["strategy"] == "any" or row["k"] == largest]


def _rows(results: Sequence[Mapping[str, Any]], circular: Circularity) -> dict[str, dict[str, float]]:
    """Return what :class:`Baselines` has: below a marked system its scores on labels that do not rest on it."""
    rows: dict[tuple[str, str], dict[str, float]] = {}
    names = list(dict.fromkeys(row["metric"] for row in results))
    metrics = [name for name in METRICS if name in names] or names[: len(METRICS)]
    for row in with_largest_k(results):
        models = (row["retriever"], row["reranker"], row["reader"])
        independent = circular.corpus(models)
        if row["metric"] not in metrics or row["corpus"] not in ("release", independent):
            continue
        system = row["retriever"] + (f" + {row['reranker']}" if row["reranker"] else "")
        if row["reader"]:
            context = "each passage alone" if row["strategy"] == "any" else f"{row['k']} passages, {row['strategy']}"
            system += f" + {row['reader']} ({context})"
        mark = " †" if any(model in circular.related for model in models) else ""
        corpus = "" if row["corpus"] == "release" else f", labels {row['corpus'].removeprefix('release, ')}"
        rows.setdefault((system + mark, corpus), {})[row["metric"]] = float(row["value"])
    order = [system for system, corpus in rows if not corpus]
    by_system = sorted(rows, key=lambda row: (order.index(row[0]), row[1]))
    return {"".join(row): rows[row] for row in by_system}

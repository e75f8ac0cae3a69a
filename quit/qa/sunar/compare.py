"""Two runs over the same questions compared: figures, and the relevant documents that only one of them finds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from quit.errors import InputError
from quit.evaluate.metrics import Measure, cover_em, run_values
from quit.evaluate.significance import compare as paired
from quit.evaluate.significance import holm
from quit.qa.sunar.run import by_substring, read_trace, trace_ids

RESAMPLES = 10_000
"""Of intervals and tests."""


def compare(before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]], top: int = 10) -> dict[str, Any]:
    """Return what ``after`` gains and loses against ``before``; traces of the same questions in the same order.

    Only questions with a relevant document count. ``gained`` and ``lost``: relevant documents that only one pool holds;
    ``gained_in_top`` and ``lost_from_top``: those that only one ``top`` holds.
    ``by_graph``: gained ones that came through an edge; ``parent_relevant``: those of them whose parent is relevant
    itself, the clustering hypothesis at work; ``parent_rank``: mean place of the parent in its batch, from 1.
    ``kinds``: both recalls (pool and ``top``) for each kind of question.
    """
    pairs = [(earlier, later) for earlier, later in zip(before, after, strict=True) if later["relevant"]]
    names = ("relevant", "gained", "lost", "by_graph", "parent_relevant", "parent_rank", "gained_in_top")
    figures: dict[str, Any] = {"questions": len(pairs), **dict.fromkeys((*names, "lost_from_top"), 0)}
    ranks: list[int] = []
    kinds: dict[str, list[tuple[Mapping[str, Any], Mapping[str, Any]]]] = {}
    for earlier, later in pairs:
        relevant = set(later["relevant"])
        gain = (set(later["pool"]) - set(earlier["pool"])) & relevant
        parents = _parents(later)
        figures["relevant"] += len(relevant)
        figures["gained"] += len(gain)
        figures["lost"] += len((set(earlier["pool"]) - set(later["pool"])) & relevant)
        tops = [set(trace["evidence"][:top]) & relevant for trace in (earlier, later)]
        figures["gained_in_top"] += len(tops[1] - tops[0])
        figures["lost_from_top"] += len(tops[0] - tops[1])
        for document in sorted(gain & parents.keys()):
            parent, rank = parents[document]
            figures["by_graph"] += 1
            figures["parent_relevant"] += parent in relevant
            ranks.append(rank)
        kinds.setdefault(later["kind"] or "", []).append((earlier, later))
    figures["parent_rank"] = round(sum(ranks) / len(ranks), 2) if ranks else None
    figures["kinds"] = {kind: _recalls(rows, top) for kind, rows in sorted(kinds.items())}
    return figures


def significance(
    before: Sequence[Mapping[str, Any]],
    after: Sequence[Mapping[str, Any]],
    *,
    substring: bool = False,
) -> dict[str, Any]:
    """Return cover-EM, Recall@10 and nDCG@10 of traces before and after, and whether they differ: the difference with
    its 95% bootstrap interval over questions, and two-sided p of a paired randomisation and a paired t test.

    Cover-EM is over questions with gold answers, the others over those with a relevant document (``questions``); a
    measure over none is left out. ``substring``: cover-EM counts an answer within a word. ``holm``: the randomisation's
    p, corrected for the measures. The SUNAR paper marks differences at the 0.1 level and names no test (table 1).
    """
    values = {}
    for name in ("cover_em", "Recall@10", "nDCG@10"):
        old, new = _values(before, name, substring), _values(after, name, substring)
        if len(old):
            values[name] = (old, new)
    # One by one: where questions lack labels, the measures cover different questions.
    differences = [paired([(new, old)], RESAMPLES, 0)[0] for old, new in values.values()]
    holm_p = holm([difference.p_randomisation for difference in differences])
    return {
        name: {"questions": len(old), "before": float(old.mean()), "after": float(new.mean())}
        | {**asdict(difference), "holm": p}
        for (name, (old, new)), difference, p in zip(values.items(), differences, holm_p, strict=True)
    }


def _values(traces: Sequence[Mapping[str, Any]], name: str, substring: bool) -> np.ndarray:
    if name == "cover_em":
        with_answers = [trace for trace in traces if trace["answers"]]
        return np.array([cover_em(trace["prediction"], trace["answers"], substring) for trace in with_answers])
    with_relevant = {trace["query_id"]: trace for trace in traces if trace["relevant"]}
    qrels = {query: trace["relevant"] for query, trace in with_relevant.items()}
    run = {query: trace["evidence"] for query, trace in with_relevant.items()}
    return np.array([value or 0.0 for value in run_values(run, qrels, Measure.parse(name)).values()])


def compare_runs(before: Path, after: Path, top: int = 10) -> dict[str, Any]:
    """Return :func:`compare` of two runs' folders, over the questions that both have answered, and as ``differences``
    their :func:`significance`.

    Raises :class:`InputError` where they have none in common, or differ in ``sunar.cover_em``, or in answers or
    relevant documents of a question.
    """
    earlier_ids = set(trace_ids(before))
    common = [name for name in trace_ids(after) if name in earlier_ids]
    if not common:
        raise InputError(f"{before} and {after} have answered no question in common.")
    if by_substring(before) != by_substring(after):
        raise InputError(f"{before} and {after} differ in sunar.cover_em, so their cover-EM cannot be compared.")
    earlier, later = ([read_trace(path, name) for name in common] for path in (before, after))
    for one, other in zip(earlier, later, strict=True):
        if (one["answers"], one["relevant"]) != (other["answers"], other["relevant"]):
            raise InputError(f"{before} and {after} differ in answers or relevant documents of {one['query_id']!r}.")
    differences = significance(earlier, later, substring=by_substring(after))
    return compare(earlier, later, top) | {"differences": differences}


def _parents(trace: Mapping[str, Any]) -> dict[str, tuple[str, int]]:
    """Return document -> (its parent, the parent's place in the batch that scored it) for what came through an edge."""
    parents: dict[str, tuple[str, int]] = {}
    for step in trace["steps"]:
        places: dict[str, int] = {}
        for batch in step.get("batches", ()):
            for document, parent in zip(batch["documents"], batch.get("parents", ()), strict=False):
                parents.setdefault(document, (parent, places[parent]))
            places |= {document: rank for rank, document in enumerate(batch["documents"], start=1)}
    return parents


def _recalls(pairs: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]], top: int) -> dict[str, Any]:
    """Return the mean recalls of the traces before and after: of the pool, and of the first ``top`` documents."""

    def mean_recall(traces: Sequence[Mapping[str, Any]], key: str, count: int | None) -> float:
        recalls = [len(set(trace[key][:count]) & set(trace["relevant"])) / len(trace["relevant"]) for trace in traces]
        return round(sum(recalls) / len(recalls), 4)

    columns = list(zip(*pairs, strict=True))
    return {
        "questions": len(pairs),
        "pool": [mean_recall(traces, "pool", None) for traces in columns],
        f"top_{top}": [mean_recall(traces, "evidence", top) for traces in columns],
    }

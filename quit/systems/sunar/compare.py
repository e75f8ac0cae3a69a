"""Where and why one way of retrieval finds more than another: two runs over the same questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from quit.errors import InputError
from quit.systems.sunar.run import read_trace, trace_ids


def compare(before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]], top: int = 10) -> dict[str, Any]:
    """Return what ``after`` gains and loses against ``before``; traces of the same questions in the same order.

    Only questions with a relevant document count. ``gained`` and ``lost``: relevant documents that only one pool holds.
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
        gained = (set(later["pool"]) - set(earlier["pool"])) & relevant
        parents = _parents(later)
        figures["relevant"] += len(relevant)
        figures["gained"] += len(gained)
        figures["lost"] += len((set(earlier["pool"]) - set(later["pool"])) & relevant)
        tops = [set(trace["evidence"][:top]) & relevant for trace in (earlier, later)]
        figures["gained_in_top"] += len(gained & tops[1])
        figures["lost_from_top"] += len(tops[0] - tops[1])
        for document in sorted(gained & parents.keys()):
            parent, rank = parents[document]
            figures["by_graph"] += 1
            figures["parent_relevant"] += parent in relevant
            ranks.append(rank)
        kinds.setdefault(later["kind"] or "", []).append((earlier, later))
    figures["parent_rank"] = round(sum(ranks) / len(ranks), 2) if ranks else None
    figures["kinds"] = {kind: _recalls(some, top) for kind, some in sorted(kinds.items())}
    return figures


def compare_runs(before: Path, after: Path, top: int = 10) -> dict[str, Any]:
    """Return :func:`compare` of two runs' folders, over the questions that both have answered.

    Raises :class:`InputError` where they have none in common.
    """
    known = set(trace_ids(before))
    common = [name for name in trace_ids(after) if name in known]
    if not common:
        raise InputError(f"{before} and {after} have answered no question in common.")
    earlier, later = ([read_trace(path, name) for name in common] for path in (before, after))
    return compare(earlier, later, top)


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

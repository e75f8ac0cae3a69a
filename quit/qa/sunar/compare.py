"""Two runs over the same questions compared: figures, and the relevant documents that only one of them finds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

from quit.common.rows import grouped
from quit.errors import InputError
from quit.evaluate.significance import Comparison, holm
from quit.evaluate.significance import compare as paired
from quit.qa.sunar.run import by_substring, read_trace, trace_ids
from quit.qa.sunar.scores import recall, values_of
from quit.qa.sunar.trace import Trace

RESAMPLES = 10_000
"""Of intervals and tests."""


class Gains(TypedDict):
    """What a run gains and loses against another, over the ``questions`` with a relevant document.

    ``gained`` and ``lost``: relevant documents that only one pool holds; ``gained_in_top`` and ``lost_from_top``: those
    that only one ``top`` holds. ``by_graph``: gained ones that came through an edge; ``parent_relevant``: those of them
    whose parent is relevant itself, the clustering hypothesis at work; ``parent_rank``: mean place of the parent in its
    batch, from 1. ``kinds``: of each kind of question how many, and the mean recall before and after of the ``pool``
    and of the first documents (``top_10``).
    """

    questions: int
    relevant: int
    gained: int
    lost: int
    by_graph: int
    parent_relevant: int
    parent_rank: float | None
    gained_in_top: int
    lost_from_top: int
    kinds: dict[str, dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureRow(Comparison):
    """A measure's means before and after, over the ``questions`` that have it, and how they differ; ``holm``: the
    randomisation's p, corrected for the measures."""

    questions: int
    before: float
    after: float


class RunComparison(NamedTuple):
    """Two runs over the questions that both have answered. ``differences``: by measure."""

    gains: Gains
    differences: dict[str, MeasureRow]


def compare(before: Sequence[Trace], after: Sequence[Trace], top: int = 10) -> Gains:
    """Return what ``after`` gains and loses against ``before``; traces of the same questions in the same order."""
    pairs = [(earlier, later) for earlier, later in zip(before, after, strict=True) if later["relevant"]]
    of_kind = grouped((later["kind"] or "", (earlier, later)) for earlier, later in pairs)
    pools = [[trace["relevant"].keys() & set(trace["pool"]) for trace in pair] for pair in pairs]
    tops = [[trace["relevant"].keys() & set(trace["evidence"][:top]) for trace in pair] for pair in pairs]
    parents = [
        parent
        for (_, later), (old, new) in zip(pairs, pools, strict=True)
        for document, parent in _parents(later).items()
        if document in new - old
    ]
    return {
        "questions": len(pairs),
        "relevant": sum(len(later["relevant"]) for _, later in pairs),
        "gained": sum(len(new - old) for old, new in pools),
        "lost": sum(len(old - new) for old, new in pools),
        "by_graph": len(parents),
        "parent_relevant": sum(parent.is_relevant for parent in parents),
        "parent_rank": round(sum(parent.rank for parent in parents) / len(parents), 2) if parents else None,
        "gained_in_top": sum(len(new - old) for old, new in tops),
        "lost_from_top": sum(len(old - new) for old, new in tops),
        "kinds": {kind: _recalls(pairs_of_kind, top) for kind, pairs_of_kind in sorted(of_kind.items())},
    }


def significance(before: Sequence[Trace], after: Sequence[Trace], *, substring: bool = False) -> dict[str, MeasureRow]:
    """Return cover-EM, Recall@10 and nDCG@10 of traces before and after, and whether they differ: the difference with
    its 95% bootstrap interval over questions, and two-sided p of a paired randomisation and a paired t test.

    A measure over no question is left out. ``substring``: as :func:`quit.qa.sunar.scores.values_of` has it. The SUNAR
    paper marks differences at the 0.1 level and names no test (table 1).
    """
    names = ("cover_em", "Recall@10", "nDCG@10")
    values = {name: (values_of(before, name, substring), values_of(after, name, substring)) for name in names}
    values = {name: pair for name, pair in values.items() if len(pair[0])}
    # One by one: where questions lack labels, the measures cover different questions.
    differences = [paired([(new, old)], RESAMPLES, 0)[0] for old, new in values.values()]
    holm_p = holm([difference.p_randomisation for difference in differences])
    rows: dict[str, MeasureRow] = {}
    for (name, (old, new)), difference, p in zip(values.items(), differences, holm_p, strict=True):
        means = {"before": float(old.mean()), "after": float(new.mean())}
        rows[name] = MeasureRow(**asdict(replace(difference, holm=p)), questions=len(old), **means)
    return rows


def compare_runs(before: Path, after: Path, top: int = 10) -> RunComparison:
    """Return the comparison of two runs' folders.

    Raises :class:`InputError` where they have no question in common, or differ in ``sunar.cover_em``, or in answers or
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
    return RunComparison(compare(earlier, later, top), differences)


class _Parent(NamedTuple):
    """The document whose neighbour came in. ``rank``: its place in the batch that scored it, from 1."""

    is_relevant: bool
    rank: int


def _parents(trace: Trace) -> dict[str, _Parent]:
    """Return document -> its parent, for what came through an edge."""
    parents: dict[str, _Parent] = {}
    for step in trace["steps"]:
        ranks: dict[str, int] = {}
        for batch in step.get("batches", ()):
            for document, parent in zip(batch["documents"], batch.get("parents", ()), strict=False):
                parents.setdefault(document, _Parent(parent in trace["relevant"], ranks[parent]))
            ranks |= {document: rank for rank, document in enumerate(batch["documents"], start=1)}
    return parents


def _recalls(pairs: Sequence[tuple[Trace, Trace]], top: int) -> dict[str, Any]:
    columns = [*zip(*pairs, strict=True)]
    pools = [[recall(trace, trace["pool"]) for trace in traces] for traces in columns]
    tops = [[recall(trace, trace["evidence"][:top]) for trace in traces] for traces in columns]
    means = {"pool": pools, f"top_{top}": tops}
    return {"questions": len(pairs)} | {
        name: [round(sum(recalls) / len(recalls), 4) for recalls in before_after]
        for name, before_after in means.items()
    }

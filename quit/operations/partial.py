"""How many passages the labelers will be asked about with ``labels.partial``: ranges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from quit.engine.pipeline import Pipeline
from quit.evaluate.labels import Patterns
from quit.stages.identities import reader_identity
from quit.status.replies import reply_counts


@dataclass(frozen=True)
class Range:
    """Passages that a labeler will be asked about, and what that costs; of ``total``, the sums.

    ``expected``: None where nothing tells. ``cost_*``: in proportion to the passages; None where a model has no price.
    """

    labeler: str
    least: int
    expected: int | None
    most: int
    cost_least: float | None
    cost_expected: float | None
    cost_most: float | None


@dataclass(frozen=True)
class PartialPlan:
    """What partial labelling will ask. ``notes`` say what was measured and what was assumed."""

    ranges: tuple[Range, ...]
    notes: tuple[str, ...]


def partial_plan(pipeline: Pipeline, passages: int, costs: Mapping[str, float | None]) -> PartialPlan | None:
    """Return what the labelers will be asked; None where ``labels.partial`` is off or none of them is left to ask.

    ``passages``: of the build. ``costs``: language model -> what asking it about all passages costs, None where it has
    no price; other labelers cost nothing.
    """
    strategy = pipeline.strategy
    labelers = strategy.labelers
    left = {run.reader for run in pipeline.left_to_do if run.stage.name == "read"} & {*labelers}
    if not strategy.in_turn or not left:
        return None
    patterns = _measured_patterns(pipeline, labelers)
    notes = ["Least: the first labeler is always right. Most: only the last labeler is ever right."]
    ranges = []
    for position, name in enumerate(labelers):
        share = share_open(patterns, range(position)) if position else 1.0
        expected = None if share is None else round(share * passages)
        cost = costs.get(name, 0.0)
        counts = (0 if position else passages, expected, passages) if name in left else (0, 0, 0)
        money = [None if count is None or cost is None else cost * count / max(1, passages) for count in counts]
        ranges.append(Range(name, *counts, *money))
    if share_open(patterns, range(1)) is not None:
        notes.append(
            "Expected: labelers are right as often as in the workspace's last build, of "
            f"{sum(patterns.values()):,} passages."
        )
    else:
        notes.append("Expected: not known; nothing here tells how often the labelers are right.")
    return PartialPlan((*ranges, Range("total", **sums(Range, ranges, 1))), tuple(notes))


def share_open(patterns: Patterns, earlier: Sequence[int]) -> float | None:
    """Return the share of passages that no earlier labeler (positions) answers correctly; None where that is not known
    of some passage."""
    bits = sum(1 << position for position in earlier)
    if not patterns or any(asked & bits != bits and not right & bits for asked, right in patterns):
        return None
    return sum(number for (_, right), number in patterns.items() if not right & bits) / sum(patterns.values())


def _measured_patterns(pipeline: Pipeline, labelers: Sequence[str]) -> Patterns:
    """Return which labelers are right on the passages of the workspace's build, nothing where it has other ones."""
    current = pipeline.workspace.current()
    for labeler in pipeline.settings.labelers:
        run = current.get(f"read:{labeler.name}")
        if "judge" not in current or run is None:
            return Counter()
        _, manifest = run
        if manifest["models"] != [reader_identity(labeler, pipeline.settings)]:
            return Counter()
    return reply_counts(pipeline.workspace, labelers)[1]


def sums(kind: type, rows: Sequence[Any], names: int) -> dict[str, Any]:
    """Return the sums of all fields of a dataclass except the first ``names``; None where one of them is not known."""
    columns = {column.name: [getattr(row, column.name) for row in rows] for column in fields(kind)[names:]}
    return {name: None if None in values else sum(values) for name, values in columns.items()}

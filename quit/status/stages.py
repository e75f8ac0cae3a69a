"""How far each stage of a workspace is, read from its files: nothing is locked and no model loaded."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from quit.common.files import files_below
from quit.common.rows import grouped, tuples
from quit.engine.reading import TableReader
from quit.engine.request import settings_of
from quit.engine.workspace import Workspace, parts_of
from quit.errors import QuitError
from quit.render.table import Table, plain_name
from quit.settings import Settings
from quit.stages.order import STAGES
from quit.stages.stage import Stage
from quit.text.words import counted

if TYPE_CHECKING:
    from quit.engine.pipeline import Pipeline

_PART = re.compile(r"part-(\d+)-of-(\d+)\.parquet")


@dataclass(frozen=True)
class StageStatus:
    """One stage run. ``state``: ``complete``, ``outdated`` (the next build makes other tables), ``partial`` or ``to
    do``; ``rows``: of its tables, where it has all of them; ``rejects``: ``kind: reason`` -> count; ``shards_done`` of
    ``shards`` (0 where that is not known yet)."""

    number: int
    run: str
    doc: str
    state: str
    rows: dict[str, int] = field(default_factory=dict)
    rejects: dict[str, int] = field(default_factory=dict)
    shards_done: int = 0
    shards: int = 0


def readable_settings(workspace: TableReader) -> Settings | None:
    """Return the settings of the last build, or None where there is none or its profile is gone."""
    try:
        return settings_of(workspace) if workspace.build else None
    except QuitError:
        return None


def status(workspace: Workspace, pipeline: Pipeline | None = None) -> list[StageStatus]:
    """Return every stage run of the last build in pipeline order.

    ``pipeline``: the workspace's, if its sources can still be read; it tells exactly which shards of an unfinished
    stage are left. Without it, they are counted in the newest unfinished folder.
    """
    current = workspace.current()
    reasons = _rejects_by_stage(workspace)
    rows = []
    for stage, key in [(run.stage, run.key) for run in pipeline.runs] if pipeline else _runs(workspace, list(current)):
        if key in current:
            folder, manifest = current[key]
            tables = manifest["tables"]
            counts = {name: facts["rows"] for name, facts in tables.items() if name != "rejects"}
            shards = len(next(iter(tables.values()))["parts"])
            state = "outdated" if pipeline and not pipeline.is_current(pipeline.stage_run(key)) else "complete"
            present = shards - len({path.name for path, _ in parts_of(folder, manifest) if not path.exists()})
            if present < shards:
                state, counts = "partial", {}
            rows.append(StageStatus(stage.number, key, stage.doc, state, counts, reasons.get(key, {}), present, shards))
            continue
        shards_done = shards = 0
        if pipeline is None:
            shards_done, shards = _shards(workspace, stage, key)
        elif current or not stage.inputs:  # the number of shards is not known before the sources are collected
            run = pipeline.stage_run(key)
            shards = len(pipeline.shards(run))
            shards_done = shards - len(pipeline.pending(run))
        state = "partial" if shards_done else "to do"
        rows.append(StageStatus(stage.number, key, stage.doc, state, shards_done=shards_done, shards=shards))
    return rows


def _runs(workspace: Workspace, current: Sequence[str]) -> list[tuple[Stage, str]]:
    """Return the stage runs of the last build, with the readers of its settings, or those that have tables if its
    profile is gone."""
    settings = readable_settings(workspace)
    runs = []
    for stage in STAGES:
        keys = [stage.name]
        if stage.per_reader and settings:
            keys = [f"{stage.name}:{reader.name}" for reader in settings.readers]
        elif stage.per_reader:
            keys = [key for key in current if key.startswith(f"{stage.name}:")] or keys
        runs += [(stage, key) for key in keys]
    return runs


def _rejects_by_stage(workspace: Workspace) -> dict[str, dict[str, int]]:
    """Return stage -> ``kind: reason`` -> count."""
    rows = tuples(workspace.read("rejects", columns=["stage", "kind", "reason"]), "stage", "kind", "reason")
    counts = Counter((stage, f"{kind}: {reason}") for stage, kind, reason in rows)
    most_first = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return {name: dict(items) for name, items in grouped((stage, (what, n)) for (stage, what), n in most_first).items()}


def _shards(workspace: Workspace, stage: Stage, key: str) -> tuple[int, int]:
    """Return (shards done, shards) of the stage run's newest unfinished folder."""
    below: dict[str, dict[str, float]] = {}
    folder = workspace.folder(key, stage.number, "x").parent
    for path in files_below(folder):
        fingerprint, _, rest = path.relative_to(folder).as_posix().partition("/")
        below.setdefault(fingerprint, {})[rest] = path.stat().st_mtime
    first = f"{stage.outputs[0]}/"
    incomplete = [files for files in below.values() if "manifest.json" not in files]
    parts_of = [{name: when for name, when in files.items() if name.startswith(first)} for files in incomplete]
    current = max(parts_of, key=lambda parts: (max(parts.values(), default=0.0), len(parts)), default={})
    parts = {match: current[name] for name in current if (match := _PART.fullmatch(name.removeprefix(first)))}
    if not parts:
        return 0, 0
    files, shards = incomplete[parts_of.index(current)], max(parts, key=parts.__getitem__)[2]
    names = [match[0] for match in parts if match[2] == shards]
    complete = sum(all(f"{output}/{name}" in files for output in stage.outputs) for name in names)
    return complete, int(shards)


def stages_table(workspace: Workspace, pipeline: Pipeline | None = None) -> Table:
    """Return a row for each stage: state, rows made, what was left out and why; ``pipeline`` as in :func:`status`."""
    leaking = workspace.read("leak_findings", columns=["hint_id"])["hint_id"].unique()
    where = {"leak_findings": f" in {counted(len(leaking), 'hint')}"}
    groups: dict[Any, list[StageStatus]] = {}
    for row in status(workspace, pipeline):  # readers that are as far and have as many rows share a line
        alike = (row.run.partition(":")[0], row.state, row.shards_done, *list(row.rows.values())[:1], str(row.rejects))
        groups.setdefault(alike, []).append(row)
    lines, earlier = [], set[str]()
    for group in groups.values():
        first, (name, _, reader) = group[0], group[0].run.partition(":")
        counts = {table: [row.rows[table] for row in group] for table, count in first.rows.items() if count}
        row_counts = [_rows_made(table, numbers) + where.get(table, "") for table, numbers in counts.items()]
        fresh = [words for words in row_counts if reader or words not in earlier]  # not what a stage before says
        earlier.update(row_counts)
        rejects = ((count, *what.partition(": ")) for what, count in first.rejects.items())
        losses = [f"{counted(count, kind)}: {plain_name(reason)}" for count, kind, _, reason in rejects]
        run = first.run if len(group) == 1 else f"{name} ({len(group)} readers)"
        state = first.state if first.state != "partial" else f"{first.shards_done} of {first.shards} shards"
        words = ", ".join(fresh)
        if fresh and len(group) > 1:
            words += " each"
        elif not fresh and state == "complete":
            words = "nothing new"
        lines.append((f"{first.number:>2} {run}", state, words, ", ".join(losses)))
    return Table("", ("stage", "state", "made", "left out"), lines, (1, 2, 3))


def _rows_made(table: str, counts: Sequence[int]) -> str:
    name = table.replace("_", " ")
    low, high = min(counts), max(counts)
    return counted(low, name.removesuffix("s"), name) if low == high else f"{low:,} to {high:,} {name}"

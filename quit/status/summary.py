"""What a workspace holds, in counts: for ``quit status``, the end of a run, and the flow's summary artifact."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from quit.common.rows import Row, sql_rows
from quit.engine.reading import TableReader
from quit.engine.request import settings_of
from quit.engine.usage import origins, totals
from quit.engine.workspace import Workspace
from quit.release.view import embedded_labels
from quit.render.table import Table, markdown, share
from quit.status.judges import agreement_tables, judge_agreements
from quit.status.losses import funnel, leakage_losses
from quit.status.notes import beyond_limits, leftovers_of_spreadsheets, small_pool, type_agreement, type_sentence
from quit.status.partial import asked_tables, partly_asked
from quit.status.replies import cut_notes, readers_table, replies_table
from quit.status.stages import stages_table, status

if TYPE_CHECKING:
    from quit.engine.pipeline import Pipeline


def labels_by_hints(workspace: TableReader) -> list[Row]:
    """Return ``hints``, ``passages`` with as many, and those of ``label_2``, ascending."""
    with workspace.connect(tables=["labels"]) as connection:
        return sql_rows(
            connection,
            """SELECT length(permutation) AS hints, count(*) AS passages, count(*) FILTER (label = 2) AS label_2
               FROM labels GROUP BY 1 ORDER BY 1""",
        )


def usage_table(workspace: TableReader) -> Table:
    """Return a row for each language model that was asked, over all runs of the workspace.

    Replies asked for, served by the generation cache, and asked for again; tokens of prompts, of these from the
    server's prefix cache, and of replies, thoughts among them; replies a second.
    """
    rows = []
    for name, usage in totals(workspace.path).items():
        rate = f"{usage.requests / usage.seconds:.1f}" if usage.seconds else ""
        share = f"{usage.cached_tokens / usage.prompt_tokens:.0%}" if usage.cached_tokens else ""
        counts = (f"{int(count):,}" for count in (usage.requests, usage.cached, usage.retries, usage.prompt_tokens))
        thoughts = f" ({int(usage.thought_tokens):,} thoughts)" if usage.thought_tokens else ""
        rows.append((name, *counts, share, f"{int(usage.completion_tokens):,}{thoughts}", rate))
    heads = ("language model", "asked", "kept", "again", "prompt", "cached", "reply", "a second")
    return Table("Asked, all runs", heads, rows)


def summary(workspace: Workspace) -> list[Table | str]:
    """Return what a build made, as tables and sentences."""
    hints = [(*row.values(), share(row["label_2"], row["passages"])) for row in labels_by_hints(workspace)]
    readers, types = readers_table(workspace), type_agreement(workspace)
    return [
        stages_table(workspace),
        Table("From sources to splits", ("", "questions"), funnel(workspace)),
        Table("Labels by number of hints", ("hints", "passages", "label 2", "share"), hints),
        replies_table(readers),
        *cut_notes(readers),
        *asked_tables(partly_asked(workspace)),
        *([usage] if (usage := usage_table(workspace)).rows else []),
        *filter(
            None,
            (
                leftovers_of_spreadsheets(workspace),
                small_pool(workspace),
                leakage_losses(workspace),
                beyond_limits(workspace),
            ),
        ),
        *agreement_tables(judge_agreements(workspace)),
        *([type_sentence(*types)] if types[0] else []),
        *filter(None, [embedded_labels(workspace, settings_of(workspace))]),
    ]


def as_dict(workspace: Workspace, pipeline: Pipeline | None = None) -> dict[str, Any]:
    """Return the whole summary as JSON-like values."""
    return {
        "workspace": str(workspace),
        "stages": [asdict(row) for row in status(workspace, pipeline)],
        "funnel": dict(funnel(workspace)),
        "leakage": leakage_losses(workspace),
        "beyond_limits": beyond_limits(workspace),
        "leftovers": leftovers_of_spreadsheets(workspace),
        "small_pool": small_pool(workspace),
        "question_types": dict(
            zip(("typed_by_source", "coarse_agrees", "fine_agrees"), type_agreement(workspace), strict=True)
        ),
        "labels_by_hints": labels_by_hints(workspace),
        "readers": [{"reader": name, **counts._asdict()} for name, counts in readers_table(workspace).items()],
        "asked": partly_asked(workspace),
        "language_models": {name: asdict(usage) for name, usage in totals(workspace.path).items()},
        "origins": origins(workspace.path),
        "judges": [*map(asdict, judge_agreements(workspace))],
    }


def markdown_summary(workspace: Workspace) -> str:
    """Return the summary of a build as Markdown."""
    return markdown([f"# Build of `{workspace.name}`", *summary(workspace)])

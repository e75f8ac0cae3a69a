"""What a workspace holds, in counts: for ``quit status``, the end of a run, and the flow's summary artifact."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quit.common.endpoints import address
from quit.common.rows import Row, sql_rows
from quit.engine.reading import TableReader, settings_of
from quit.engine.usage import origins, totals
from quit.engine.workspace import Workspace
from quit.errors import shell_word
from quit.evaluate.labels import SPLITS
from quit.models.equivalence.bem import is_bem
from quit.models.readers.pool import FITTING_MINIMUM, pool_size
from quit.release.view import embedded_labels
from quit.render.table import Table, markdown, plain_name, share
from quit.sources.notes import leftovers
from quit.stages.collect import collect_stage
from quit.stages.filter import filter_stage
from quit.stages.order import STAGES
from quit.status.judges import agreement_tables, judge_agreements
from quit.status.partial import asked_tables, partly_asked
from quit.status.replies import cut_notes, readers_table, replies_table
from quit.status.stages import StageStatus, status
from quit.text.words import counted

if TYPE_CHECKING:
    from quit.engine.pipeline import Pipeline


def left_out(workspace: Workspace) -> list[Row]:
    """Return every row of ``rejects``: stage, kind, reason, detail, file, position, record_id, question_id, hint_id."""
    columns = "stage, kind, reason, detail, file, position, record_id, question_id, hint_id"
    with workspace.connect(tables=["rejects"]) as connection:
        return sql_rows(connection, f"SELECT {columns} FROM rejects ORDER BY ALL")


def ways_out(rejects: Iterable[Mapping[str, Any]], workspace: object = None) -> str | None:
    """Return what to do about questions that a leaking hint costs, with a command for the first; None where there are
    none. ``rejects``: rows with ``reason`` and ``detail``. ``workspace``: the commands' default if not given."""
    leaks = (row["detail"] for row in rejects if row["reason"] == "answer_leak")
    hints = [match[1] for detail in leaks if (match := re.search(r"of \d+ hints leak; (\S+): ", detail))]
    if not hints:
        return None
    place = f" -w {shell_word(workspace)}" if workspace is not None else ""
    return (
        f"{counted(len(hints), 'question leaves', 'questions leave')} for leaking hints. Rewrite or delete such a hint;"
        f" or drop hints alone: quit build{place} --set leakage.mode=hint; or, where it is no leak: quit override leak"
        f"{place} --hint {hints[0]} --decision no_leak --by YOU --reason WHY"
    )


def funnel(workspace: Workspace) -> list[tuple[str, int]]:
    """Return (what, number of questions) from the sources to the splits: what is left after each stage and reason that
    left questions out. Questions beyond a limit (``collect.questions``) come after the others of their stage."""
    losses = workspace.rows(
        "SELECT stage, reason, count(DISTINCT question_id) FROM rejects WHERE kind = 'question' GROUP BY ALL",
        ["rejects"],
    )
    [(rest,)] = workspace.rows("SELECT count(*) FROM questions", ["questions"])
    splits = dict(workspace.rows("SELECT split, count(*) FROM splits GROUP BY 1", ["splits"]))
    number = {stage.name: stage.number for stage in STAGES}
    losses.sort(key=lambda loss: (number.get(loss[0], 0), loss[1] == "beyond_questions", loss[1]))
    rest += sum(count for stage, _, count in losses if stage == collect_stage.name)
    steps = [("in the sources", rest)]
    for stage, reason, count in losses:
        rest -= count
        steps.append((f"after {stage} ({plain_name(reason)})", rest))
    return [*steps, *((f"in {split}", splits.get(split, 0)) for split in SPLITS)]


def labels_by_hints(workspace: TableReader) -> list[Row]:
    """Return ``hints``, ``passages`` with as many, and those of ``label_2``, ascending."""
    with workspace.connect(tables=["labels"]) as connection:
        return sql_rows(
            connection,
            """SELECT length(permutation) AS hints, count(*) AS passages, count(*) FILTER (label = 2) AS label_2
               FROM labels GROUP BY 1 ORDER BY 1""",
        )


def type_agreement(workspace: TableReader) -> tuple[int, int, int]:
    """Return (questions whose source names their type, classifier agrees on the coarse type, on the fine type)."""
    [row] = workspace.rows(
        """
        SELECT count(*), count(*) FILTER (q.coarse = d.classifier_coarse), count(*) FILTER (q.fine = d.classifier_fine)
        FROM questions q JOIN descriptions d USING (question_id)
        WHERE q.coarse IS NOT NULL AND q.fine IS NOT NULL AND d.classifier_fine IS NOT NULL
        """,
        ["questions", "descriptions"],
    )
    return row


PAPER_LOSSES = 442, 17645
"""Questions that the paper's filter left out, of how many (3.1.2): 17,203 remain."""


def leakage_losses(workspace: Workspace) -> str | None:
    """Return how many questions the leakage filter left out and by which method; None before it ran.

    The paper's share stands beside it only where BEM itself judged, by the paper's method.
    """
    if "filter" not in (current := workspace.current()) or not current["filter"].manifest.get("models"):
        return None
    manifest = current["filter"].manifest
    [(questions, losses)] = workspace.rows(
        "SELECT count(*), count(*) FILTER (question_id IN (SELECT question_id FROM rejects WHERE stage = 'filter' AND "
        "kind = 'question')) FROM questions",
        ["questions", "rejects"],
    )
    method = manifest["settings"]["leakage"]["method"]
    bem = is_bem(manifest["models"][filter_stage.models.index("equivalence")])
    model = "BEM" if bem else "the embedded equivalence model"
    if method == "bem" and not bem:
        model += " in BEM's place"
    text = (
        f"Answer leakage: {losses:,} of {questions:,} questions left out ({share(losses, questions)}), by method "
        f"{method} with {model}"
    )
    loss, total = PAPER_LOSSES
    return text + (f"; the paper: {loss / total:.1%}." if bem and method == "bem" else ".")


def small_pool(workspace: Workspace) -> str | None:
    """Return what to know about a small pool of answers; None where it is large, or no embedded reader has read."""
    models = (facts.get("models", ()) for run, (_, facts) in workspace.current().items() if run.startswith("read:"))
    if "/pool-of-" not in "".join(chain(*models)):
        return None
    rows = workspace.rows(
        f"""SELECT answer FROM (SELECT question_id, unnest(answers) AS answer FROM questions
                                UNION SELECT question_id, candidate FROM candidates)
            SEMI JOIN descriptions USING (question_id) GROUP BY 1 LIMIT {20 * FITTING_MINIMUM}""",
        ["questions", "candidates", "descriptions"],
    )
    return about_small_pool(pool_size(answer for (answer,) in rows))


def about_small_pool(size: int) -> str | None:
    """Return what to know about labels by readers that choose from so few answers; None where there are enough."""
    if size >= FITTING_MINIMUM:
        return None
    return (
        f"The embedded readers choose from {counted(size, 'answer')} (gold answers and candidates of all questions). "
        f"With fewer than {FITTING_MINIMUM} they are often right by chance, so the share of label 2 says little. Give "
        "questions more candidates (plausible wrong answers), or build more questions together."
    )


def leftovers_of_spreadsheets(workspace: Workspace) -> str | None:
    """Return which questions and gold answers seem to be what a spreadsheet left; None where none does."""
    rows = workspace.rows("SELECT question_id, question, answers FROM questions ORDER BY ALL", ["questions"])
    notes = [f"{one}: {note}" for one, question, answers in rows for note in leftovers(question, answers)]
    return f"Left by a spreadsheet ({len(notes):,}): {' '.join(notes[:5])}" if notes else None


def beyond_limits(workspace: TableReader) -> str | None:
    """Return how many rows of each table have a note (:mod:`quit.models.limits`); None where none has."""
    tables = []
    for name in ("ranked_hints", "descriptions", "verdicts", "second_verdicts"):
        notes = workspace.read(name, columns=["note"]).column("note")
        if count := len(notes) - notes.null_count:
            tables.append(f"{count:,} rows of {name}")
    return f"Texts beyond the limits of embedded models (column note): {', '.join(tables)}." if tables else None


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


def type_sentence(typed: int, coarse: int, fine: int) -> str:
    """Return what :func:`type_agreement` counts in words."""
    lower = " The sources give some fine types another coarse type than the classifier's." if coarse < fine else ""
    return (
        f"Question types: the classifier agrees with the sources' own on {share(coarse, typed)} (coarse) and "
        f"{share(fine, typed)} (fine) of {typed:,} questions.{lower}"
    )


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


def markdown_links(workspace: Workspace) -> str:
    """Return where things are, as a Markdown list: the workspace, its review project, its releases."""
    from quit.dataset.release import FOLDER, releases_of
    from quit.review.store import ReviewStore

    root = workspace.address
    lines = [f"- workspace: [{root}]({Path(root).as_uri()})"]
    project = ReviewStore(workspace).project
    if project.get("url") and project.get("id"):
        url = f"{address(project['url'])}/projects/{project['id']}/data"
        lines.append(f"- review project: [{url}]({url})")
    for release in releases_of(workspace):
        there = f"{root}/{FOLDER}/{release.name}"
        lines.append(f"- release {release.name} (`{release.content_id[:12]}`): [{there}]({Path(there).as_uri()})")
    return "\n".join(lines) + "\n\n"

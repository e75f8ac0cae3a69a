"""What the terminal shows: tables, plans and summaries. Colour only where the terminal has it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from quit.common.rows import Row
from quit.engine.request import settings_of
from quit.engine.usage import origin_lines, origins
from quit.release.view import embedded_labels
from quit.render import terminal
from quit.render.table import Table, number
from quit.status.losses import left_out, ways_out
from quit.status.partial import asked_tables, partly_asked
from quit.status.replies import cut_notes, readers_table, replies_table
from quit.status.stages import stages_table
from quit.status.summary import summary
from quit.text.words import counted, shell_word

if TYPE_CHECKING:
    import pyarrow as pa

    from quit.engine.pipeline import Pipeline
    from quit.engine.workspace import Workspace
    from quit.operations.plan import Plan


def print_rows(rows: pa.Table) -> None:
    """Print the rows of a query."""
    import pyarrow as pa

    words = tuple(place for place, column in enumerate(rows.schema) if pa.types.is_string(column.type))
    table = Table("", rows.column_names, [tuple(row.values()) for row in rows.to_pylist()], words)
    terminal.show([table], fold=True)


def print_status(workspace: Workspace, pipeline: Pipeline | None) -> None:
    """Print how far each stage is, what readers were asked and replied, and who replied."""
    pieces: list[Table | str] = [stages_table(workspace, pipeline)]
    readers = readers_table(workspace)
    if any(replies.cut or replies.sentences or replies.filtered for replies in readers.values()):
        pieces += [replies_table(readers), *cut_notes(readers)]
    lines = origin_lines(origins(workspace.path))
    pieces += filter(None, [embedded_labels(workspace, pipeline.settings) if pipeline else None])
    pieces += asked_tables(partly_asked(workspace))
    pieces += ["\n".join(["Replies used, all runs", *lines])] if lines else []
    terminal.show(pieces)


def print_left_out(rows: Sequence[Row], workspace: Workspace) -> None:
    """Print a line for everything that was left out: where, what, why."""
    beyond = [row for row in rows if row["reason"] == "beyond_questions"]
    for row in (row for row in rows if row["reason"] != "beyond_questions"):
        which = row["hint_id"] or row["question_id"] or row["record_id"] or ""
        file = f"{row['file']}, " if row["file"] else ""
        line = f"{row['stage']}: {file}{row['kind']} {which}: {row['reason']} ({row['detail']})"
        terminal.sentence(line)
    if advice := ways_out(rows, workspace):
        terminal.sentence(advice)
    if beyond:
        why = f"beyond_questions ({beyond[0]['detail']} All: quit build --questions 0)"
        terminal.sentence(f"collect: {counted(len(beyond), 'question')}: {why}")
    if not rows:
        terminal.line("Nothing was left out.")


def print_summary(workspace: Workspace) -> None:
    """Print what a build made, where it is and what to do next."""
    terminal.show(summary(workspace))
    path = escape(shell_word(workspace))
    terminal.sentence(f"\nThe tables are in {workspace}/tables, numbered in pipeline order. Next:")
    first = workspace.rows("SELECT question_id FROM labels ORDER BY 1 LIMIT 1", ["labels"])
    next_commands = {f"show -w {path} {escape(name)}": "everything about one question" for (name,) in first}
    if partly_asked(workspace) or not settings_of(workspace).passages.is_full:
        next_commands[f"export -w {path} --format huggingface --out exports"] = "a Hugging Face dataset"
    else:
        next_commands[f"export -w {path} --out exports"] = "a Hugging Face dataset and the paper's release JSON"
    if embedded_labels(workspace, settings_of(workspace)):
        next_commands["models profile openai --model gpt-4o-mini-2024-07-18"] = "a profile with language models"
    next_commands[f"review serve -w {path}"] = "review by people"
    next_commands[f"release create -w {path} --name v1"] = "a version that stays as it is"
    if left_out(workspace):
        next_commands[f"status -w {path} --left-out"] = "what was left out, and why"
    next_commands[f"report -w {path}"] = "the dataset on one page"
    for command, what in next_commands.items():
        terminal.line(f"  {what}:\n    quit {command}", soft_wrap=True)


def print_plan(plan: Plan) -> None:
    """Print what a build will ask, a row per model and role, and the assumptions."""
    pieces: list[Table | str] = [f"{counted(plan.questions, 'question')}, {counted(plan.passages, 'passage')}"]
    if plan.remembered:
        words = ", ".join(f"--set {text}" for text in plan.remembered)
        words = words.replace("--set profile=", "--profile ").replace("--set collect.questions=", "--questions ")
        if "--questions" in words and "--questions 0" not in words:
            words += "; --questions 0 for all"
        pieces.insert(0, f"As the last build: {words}")
    lines = [*plan.lines, *([plan.total] if len(plan.lines) > 1 else [])]
    if plan.lines:
        requests = [
            (line.model, line.role, *(_short(count) for count in (line.requests, line.cached, line.prompt_tokens,
             line.completion_tokens)))
            for line in lines
        ]  # fmt: skip
        costs = [
            (line.model, line.role, number(line.seconds and line.seconds / 3600, missing="unknown"),
             number(line.cost, missing="unknown"))
            for line in lines
        ]  # fmt: skip
        notes = ["cost: in the currency of the prices, without a prefix cache"]
        if plan.total.seconds is None:
            notes.append(
                "hours: unknown until a model has answered here; --throughput says how many replies per second"
            )
        if plan.total.cost is None:
            notes.append("cost: unknown where a model has no price_prompt and price_completion in the profile")
        columns_note = "kept: replies in the generation cache already\nprompt, reply: tokens"
        heads = ["model", "role", "replies", "kept", "prompt", "reply"]
        pieces.append(Table("", heads, requests, (1,), columns_note))
        heads = ["model", "role", "hours", "cost"]
        pieces.append(Table("Time and cost", heads, costs, (1,), "\n".join(notes)))
    pieces += ["\n".join(f"- {note}" for note in plan.notes)] if plan.notes else []
    terminal.show(pieces)


def _short(number: float) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if number >= size:
            return f"{number / (1e3 if letter == 'k' else size):,.1f}{letter}"
    return f"{number:,.0f}"


def print_checks(checks: Sequence[Any]) -> None:
    """Print the doctor's findings."""
    for check in checks:
        mark = "[green]ok[/]   " if check.ok else "[red]fault[/]"
        remedy = "" if check.ok or not check.remedy else f"\n      {escape(check.remedy)}"
        terminal.line(f"{mark} {check.what}: {escape(check.found)}{remedy}")

"""What the terminal shows: tables and one question's story. Colour only where the terminal has it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.table import Table

from quit.common.terminal import SafeConsole
from quit.engine.pipeline import Pipeline
from quit.engine.usage import origin_lines, origins
from quit.engine.workspace import Workspace
from quit.operations.economy import Economy
from quit.operations.plan import Plan
from quit.settings import Loaded
from quit.status.asked import asked, asked_tables
from quit.status.stages import status
from quit.status.summary import (
    REPLIES,
    USAGE,
    JudgeAgreement,
    Replies,
    cut_replies,
    funnel,
    judge_agreement,
    labels_by_hints,
    leakage_losses,
    out_of_depth,
    readers_table,
    replies_rows,
    type_agreement,
    usage_rows,
)
from quit.text.words import counted

if TYPE_CHECKING:
    import pyarrow as pa

    from quit.settings.benchmark import Benchmark
    from quit.systems.benchmark.runfile import RunScores

_WIDEST = 10_000  # columns: more than any line needs
_OUT = SafeConsole(highlight=False, width=None if sys.stdout.isatty() else _WIDEST)


def _table(*columns: str, title: str | None = None) -> Table:
    """Return a table. ``name<``: text that may wrap at spaces; ``name!``: names, which never wrap; else numbers."""
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for column in columns:
        left, name = column[-1:] in ("<", "!"), column.rstrip("<!")
        table.add_column(name, justify="left" if left else "right", no_wrap=not column.endswith("<"))
    return table


def _show(table: Table) -> None:
    """Print a table as wide as the terminal, and where its names need more, as wide as it has to be."""
    options = _OUT.options.update(width=_WIDEST)
    for column in table.columns:
        cells = [_OUT.measure(cell, options=options) for cell in (column.header, *column.cells)]
        column.min_width = max(cell.maximum if column.no_wrap else cell.minimum for cell in cells)
    measured = _OUT.measure(table, options=options)
    table.width = min(max(_OUT.width, measured.minimum), measured.maximum)
    with _OUT.capture() as drawn:
        _OUT.print(table, crop=False)
    for line in drawn.get().splitlines():
        _OUT.file.write(line.rstrip() + "\n")


def print_rows(rows: pa.Table) -> None:
    """Print the rows of a query."""
    import pyarrow as pa

    table = _table(
        *(f"{name}<" if pa.types.is_string(rows.schema.field(name).type) else name for name in rows.column_names)
    )
    for row in rows.to_pylist():
        table.add_row(*(escape("" if value is None else str(value)) for value in row.values()))
    _show(table)


def print_status(workspace: Workspace, pipeline: Pipeline | None) -> None:
    """Print a row a stage: state, rows made, what was left out and why."""
    table = _table("", "stage!", "state!", "made<", "left out<")
    for row in status(workspace, pipeline):
        state = row.state if row.state != "partial" else f"{row.shards_done} of {row.shards} shards"
        table.add_row(str(row.number), row.run, state, row.made, row.left_out)
    _show(table)


def print_origins(workspace: Workspace) -> None:
    """Print which servers the replies of language models came from."""
    if lines := origin_lines(origins(workspace.path)):
        _OUT.print("\nReplies used, all runs")
        for line in lines:
            _OUT.print(escape(line), soft_wrap=True)


def print_asked(workspace: Workspace) -> bool:
    """Print about which passages readers were asked, where that is not all; return whether it is not."""
    facts = asked(workspace)
    for asked_table in asked_tables(facts):
        first, *others = asked_table.heads
        table = _table(f"{first}!", *others, title=f"\n{asked_table.title}")
        for row in asked_table.rows:
            table.add_row(*row)
        _show(table)
    return facts is not None


def print_left_out(rows: Sequence[dict[str, Any]]) -> None:
    """Print a line for everything that was left out: where, what, why."""
    for row in rows:
        which = row["hint_id"] or row["question_id"] or row["record_id"] or ""
        file = f"{row['file']}, " if row["file"] else ""
        line = f"{row['stage']}: {file}{row['kind']} {which}: {row['reason']} ({row['detail']})"
        _OUT.print(escape(line), soft_wrap=True)
    if not rows:
        _OUT.print("Nothing was left out.")


def print_replies(readers: Sequence[Replies]) -> None:
    """Print a row a reader: how many passages it read, and what its replies came to."""
    table = _table("reader!", *REPLIES, title="\nReaders")
    for row in replies_rows(readers):
        table.add_row(*row)
    _show(table)
    for line in cut_replies(readers):
        _OUT.print(escape(line), style="yellow", soft_wrap=True)


def print_summary(workspace: Workspace) -> None:
    """Print what a build made, where it is and what to do next."""
    print_status(workspace, None)
    table = _table("questions<", "", title="\nFrom sources to splits")
    for name, count in funnel(workspace):
        table.add_row(name, f"{count:,}")
    _show(table)
    table = _table("hints", "passages", "label 2", "share", title="\nLabels by number of hints")
    for hints, passages, right in labels_by_hints(workspace):
        table.add_row(str(hints), f"{passages:,}", f"{right:,}", f"{right / passages:.1%}")
    _show(table)
    print_replies(readers_table(workspace))
    partly = print_asked(workspace)
    usage = usage_rows(workspace)
    if usage:
        table = _table(*(f"{name}!" if name == "language model" else name for name in USAGE), title="\nAsked, all runs")
        for row in usage:
            table.add_row(*row)
        _show(table)
    for text in (leakage_losses(workspace), out_of_depth(workspace)):
        if text:
            _OUT.print(f"\n{escape(text)}")
    agreement = judge_agreement(workspace)
    if agreement:
        _OUT.print(f"\n{agreement.sentence()}")
    typed, coarse, fine = type_agreement(workspace)
    if typed:
        _OUT.print(
            f"\nQuestion types: of {typed:,} that a source names, the classifier agrees on {coarse / typed:.1%} "
            f"(coarse) and {fine / typed:.1%} (fine)."
        )
    path = escape(str(workspace))
    _OUT.print(f"\nThe tables are in {path}/tables, numbered in pipeline order. Next:", soft_wrap=True)
    with workspace.connect() as connection:
        first = connection.execute("SELECT question_id FROM labels ORDER BY 1 LIMIT 1").fetchone()
    next_commands = {f"show -w {path} {escape(first[0])}": "everything about one question"} if first else {}
    next_commands |= {
        **(
            {f"export -w {path} --format huggingface --out exports": "a Hugging Face dataset"}
            if partly
            else {f"export -w {path} --out exports": "a Hugging Face dataset and the paper's release JSON"}
        ),
        f"status -w {path} --left-out": "what was left out, and why",
        f"report -w {path}": "the dataset on one page",
    }
    for command, what in next_commands.items():
        _OUT.print(f"  {what}:\n    quit {command}", soft_wrap=True)


def print_disagreements(agreement: JudgeAgreement | None, rows: Sequence[dict[str, Any]], limit: int) -> None:
    """Print how far two judges agree and where they do not; ``limit`` rows at most (0: all)."""
    if agreement is None:
        _OUT.print("There is one judge only: no language model judged this workspace.")
        return
    _OUT.print(escape(agreement.sentence()))
    table = _table("passages", "judge!", "second!", "answer<", "gold<", "question<")
    for row in rows[: limit or None]:
        verdicts = (_verdict(row["correct"]), f"{_verdict(row['second_correct'])} {row['second_probability'] or 0:.2f}")
        texts = (row["answer"], "; ".join(row["gold"]), row["question"])
        table.add_row(f"{row['passages']:,}", *verdicts, *(escape(text) for text in texts))
    if rows:
        _show(table)
    if limit and len(rows) > limit:
        _OUT.print(f"... {len(rows) - limit} more (--limit 0 shows all)")


def print_run_scores(scores: RunScores, split: str, settings: Benchmark) -> None:
    """Print a run's metrics with their intervals, and what to know about them."""
    _OUT.print(f"{escape(scores.name)}: {counted(scores.split, 'question')} of {escape(split)}, values in percent")
    table = _table("metric<", "value", "95% interval")
    for row in scores.results.to_pylist():
        value, low, high = (f"{100 * row[name]:.2f}" for name in ("value", "low", "high"))
        table.add_row(row["metric"], value, f"{low} to {high}")
    _show(table)
    policy = "0 in metrics with rel=2" if settings.without_relevant == "zero" else "left out of metrics with rel=2"
    for count, what in (
        (scores.missing, "of the split not in the run: 0 in every metric that counts them"),
        (scores.others, f"of the run not in the split {split}: not scored"),
        (scores.without_full, f"without a passage of label 2: {policy}"),
    ):
        if count:
            _OUT.print(escape(f"- {counted(count, 'question')} {what}"), soft_wrap=True)
    if scores.unknown:
        _OUT.print(f"- {counted(scores.unknown, 'line')} with a passage that the release does not have: not relevant")


def print_plan(plan: Plan) -> None:
    """Print what a build will ask, a row a model and role, and what was assumed."""
    _OUT.print(f"{counted(plan.questions, 'question')}, {counted(plan.passages, 'passage')}")
    rows = [*plan.lines, *([plan.total] if len(plan.lines) > 1 else [])]
    if plan.lines:
        table = _table("model!", "role!", "replies", "kept", "prompt", "computed", "reply")
        for line in rows:
            tokens = (_short(number) for number in (line.prompt_tokens, line.computed, line.completion_tokens))
            table.add_row(line.model, line.role, _short(line.requests), _short(line.cached), *tokens)
        _show(table)
        _OUT.print("kept: replies in the generation cache already")
        _OUT.print("prompt, computed, reply: tokens; computed: prompt tokens left to compute with a prefix cache")
        table = _table("model!", "role!", "hours", "cost", "uncached", title="\nTime and cost")
        for line in rows:
            hours = "unknown" if line.seconds is None else f"{line.seconds / 3600:,.2f}"
            costs = ("unknown" if cost is None else f"{cost:,.2f}" for cost in (line.cost, line.cost_uncached))
            table.add_row(line.model, line.role, hours, *costs)
        _show(table)
        _OUT.print("cost: in the currency of the prices; uncached: without a prefix cache")
        if plan.total.seconds is None:
            _OUT.print("hours: unknown until a model has answered here; --throughput says how many replies a second")
        if plan.total.cost is None:
            _OUT.print("cost: unknown where a model has no price_prompt and price_completion in the profile")
    for note in plan.notes:
        _OUT.print(f"- {escape(note)}", soft_wrap=True)
    if plan.economy:
        _print_economy(plan.economy)


def _print_economy(economy: Economy) -> None:
    """Print about how many passages labelers will be asked, and what that costs."""
    heads = ("least", "expected", "most", "cost: least", "expected", "most")
    table = _table("labeler!", *heads, title="\nPassages asked (labels.economy)")
    for entry in economy.ranges:
        counts = (None if count is None else _short(count) for count in (entry.least, entry.expected, entry.most))
        costs = (
            None if cost is None else f"{cost:,.2f}"
            for cost in (entry.cost_least, entry.cost_expected, entry.cost_most)
        )
        table.add_row(entry.labeler, *(text or "?" for text in (*counts, *costs)))
    _show(table)
    _OUT.print("The most is also what other tables of this plan have.")
    for note in economy.notes:
        _OUT.print(f"- {escape(note)}", soft_wrap=True)


def _short(number: float) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if number >= size:
            return f"{number / (1e3 if letter == 'k' else size):,.1f}{letter}"
    return f"{number:,.0f}"


def print_settings(loaded: Loaded) -> None:
    """Print every setting, its value and its origin."""
    table = _table("setting!", "from!", "value<")
    for key, value, origin in loaded.rows():
        table.add_row(key, origin, escape(str(value)))
    _show(table)


def print_checks(checks: Sequence[Any]) -> None:
    """Print the doctor's findings."""
    for check in checks:
        mark = "[green]ok[/]   " if check.ok else "[red]fault[/]"
        remedy = "" if check.ok else f"\n      {escape(check.remedy)}"
        _OUT.print(f"{mark} {check.what}: {escape(check.found)}{remedy}")


def print_exports(out: Path, manifests: Sequence[Any]) -> None:
    """Print what an export wrote."""
    for manifest in manifests:
        size = sum(entry.bytes for entry in manifest.files)
        _OUT.print(f"{escape(str(out / manifest.format))}: {len(manifest.files)} files, {size / 1e6:,.1f} MB")


def describe_override(row: dict[str, Any]) -> str:
    """Return one override as a line: what, which, who, when, why."""
    which = "".join(f" {row[key]!r}" for key in ("span", "answer") if row[key])
    return f"{row['decision']} {row['hint_id'] or ''}{which}, by {row['by']} at {row['created_at']} ({row['reason']})"


def override_line(row: dict[str, Any]) -> str:
    """Return one override as a line of a list; one that was replaced or withdrawn says so."""
    mark = "" if row["in_force"] else " (no more)"
    return f"Override {row['override_id']}{mark}: {describe_override(row)}"


def print_question(life: dict[str, Any], passages: int) -> None:
    """Print one question's story; ``passages`` limits how many passages are listed (0: all)."""
    _OUT.print(f"[bold]{escape(life['question_id'])}[/]")
    if question := life["question"]:
        gold = "Gold" if all(row["origin"] for row in life["valid_answers"]) else "Answers as published"
        _OUT.print(f"{escape(question['question'])}\n{gold}: {escape('; '.join(question['answers']))}")
    _print_origins(life)
    _print_hints(life)
    _print_probe_and_split(life)
    if life["passages"]:
        _print_passages(life, passages)
    _print_verdicts(life)
    _print_reviews(life)


def _print_origins(life: dict[str, Any]) -> None:
    for row in life["origins"]:
        file, record = escape(row["file"]), escape(row["record_id"])
        _OUT.print(f"From {row['source']} {file}, record {row['position']} ({record})")
    for row in life["rejects"]:
        where = escape(f" {row['hint_id']}" if row["hint_id"] else "")
        _OUT.print(f"[yellow]Left out[/] at {row['stage']}{where}: {row['reason']} ({escape(row['detail'])})")
    if life["candidates"]:
        _OUT.print(f"Candidates: {escape(', '.join(life['candidates']))}")
    if life["drawn_candidates"]:
        drawn = ", ".join(row["candidate"] for row in life["drawn_candidates"])
        _OUT.print(f"Candidates drawn from the collection: {escape(drawn)}")


def _print_hints(life: dict[str, Any]) -> None:
    table = _table("", "convergence", "hint<", "from!", title="\nHints")
    for row in life["hints"]:
        value = "" if row["convergence"] is None else f"{row['convergence']:.2f}"
        table.add_row(str(row["rank"]) if row["selected"] else "", value, escape(row["hint"]), escape(row["file"]))
    _show(table)
    for row in life["leak_findings"]:
        overridden = "; overridden: no leak" if row["overridden"] else ""
        _OUT.print(
            f"Leak in {row['hint_id']}: {escape(row['span'])!r} for {escape(row['answer'])!r} "
            f"({row['method']}, {row['probability']:.2f}{overridden})"
        )
    for row in life["overrides"]:
        _OUT.print(escape(override_line(row)), soft_wrap=True)


def _print_probe_and_split(life: dict[str, Any]) -> None:
    if (row := life["description"]) and row["coarse"]:
        producer = escape(row["type_producer"].partition("@")[0])
        difficulty = f"difficulty {row['difficulty']:.2f} ({row['difficulty_bin']})"
        _OUT.print(f"\nType {row['coarse']} / {row['fine']} ({producer}); {difficulty}")
    for row in life["probe"]:
        if row["repetition"] == 0:
            _OUT.print(f"Without hints, {row['reader']}: {escape(row['answer'])} ({_verdict(row['correct'])})")
    if row := life["split"]:
        parametric = {True: " (parametrically answerable)", False: " (not parametrically answerable)", None: ""}
        _OUT.print(f"Split: {row['split']}{parametric[row['parametric']]}")


def _print_passages(life: dict[str, Any], limit: int) -> None:
    """Print passages with their labels and each distinct answer with the numbers of the readers that gave it."""
    rows = life["passages"]
    by_answers = sorted(rows, key=lambda row: -len(row["answers"]))  # not every reader is asked about every passage
    names = dict.fromkeys(name for row in by_answers for name in row["answers"])
    numbers = {name: number for number, name in enumerate(names, 1)}
    _OUT.print(f"\n[bold]{counted(len(rows), 'passage')}[/]; readers in brackets, * is a labeler:")
    for name, number in numbers.items():
        mark = "*" if name in life["labelers"] else " "
        _OUT.print(f"  {number}{mark} {escape(name)}", soft_wrap=True)
    table = _table("passage!", "label", "answers<")
    for row in rows[: limit or None]:
        given: dict[str, list[str]] = {}
        for name, answer in row["answers"].items():
            given.setdefault(answer, []).append(str(numbers[name]))
        answers = (f"{escape(answer)} ({' '.join(readers)})" for answer, readers in given.items())
        label = str(row["label"]) + ("" if row["predicted"] is None else f" (predicted, {row['predicted']:.2f})")
        table.add_row(row["permutation"], label, ", ".join(answers))
    _show(table)
    if limit and len(rows) > limit:
        _OUT.print(f"... {len(rows) - limit} more (--passages 0 shows all)")


def _print_verdicts(life: dict[str, Any]) -> None:
    table = _table("verdict!", "answer<", "given", "basis!", title="\nVerdicts")
    for row in life["verdicts"]:
        verdict = "unknown" if (row["correct"], row["basis"]) == (None, None) else _verdict(row["correct"])
        table.add_row(verdict, escape(row["answer"]), str(row["passages"]), row["basis"] or "published")
    if life["verdicts"]:
        _show(table)
        _OUT.print(f"Valid answers: {escape('; '.join(row['answer'] for row in life['valid_answers']))}")


def _print_reviews(life: dict[str, Any]) -> None:
    for row in life["reviews"]:
        if row["kind"] == "annotation":
            _OUT.print(f"Reviewed by {escape(row['annotator'])} ({row['state']}, version {row['version']})")
        elif row["text"]:
            _OUT.print(f"  {row['kind']}: {escape(row['text'])}")
    for row in life["changes"]:
        what = row["change"].replace("_", " ")
        if row["change"] == "label":
            what = f"{row['passages']} labels {row['before']} -> {row['after']}"
        cause = "review" if row["reviews"] or what.startswith("answer") else "the second leakage filter"
        _OUT.print(f"Changed by {cause}: {what}: {escape(row['reason'])}")


def _verdict(correct: bool | None) -> str:
    return {True: "correct", False: "wrong", None: "unreadable"}[correct]

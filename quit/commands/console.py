"""What the terminal shows: progress, tables and one question's story. Colour only where the terminal has it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from quit.common.progress import Listener, listening
from quit.common.words import counted
from quit.engine.pipeline import Pipeline
from quit.engine.workspace import Workspace
from quit.operations.plan import Plan
from quit.settings import Loaded
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

if TYPE_CHECKING:
    import pyarrow as pa

    from quit.settings.benchmark import Benchmark
    from quit.systems.benchmark.runfile import RunScores

_OUT = Console(highlight=False)
_ERR = Console(stderr=True, highlight=False)
_TICK = 0.5  # seconds between looks at the language models' meter


class Notes(Listener):
    """Prints what a job notes to stderr."""

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet

    def noted(self, text: str, loud: bool) -> None:
        """Print one line, with ``quiet`` only a loud one."""
        if loud or not self.quiet:
            _ERR.print(escape(text), soft_wrap=True)


def _progress(quiet: bool, *share: ProgressColumn, last: Sequence[ProgressColumn] = (), **options: Any) -> Progress:
    """Return a progress bar for stderr that leaves nothing behind; ``share``: the columns after the bar itself."""
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description:<28}"),
        BarColumn(),
        *share,
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        *last,
        console=_ERR,
        disable=quiet or not _ERR.is_terminal,
        transient=True,
        **options,
    )


class BuildConsole(Notes):
    """The progress bar of a build, which listens to it. Use as a context manager around the flow."""

    def __init__(self, pipeline: Pipeline, quiet: bool = False) -> None:
        super().__init__(quiet)
        self._pipeline = pipeline
        asked = TextColumn("{task.fields[asked]}")
        self._bar = _progress(quiet, MofNCompleteColumn(), TextColumn("shards"), last=(asked,))
        self._tasks: dict[str, Any] = {}
        self._current: str | None = None
        self._left = Event()

    def __enter__(self) -> BuildConsole:
        self._bar.start()
        self._listening = listening(self)
        self._listening.__enter__()
        Thread(target=self._watch, name="progress", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.__exit__(None, None, None)
        self.stop()

    def stop(self) -> None:
        """End the bar, so that nothing of it is left on the terminal."""
        self._left.set()
        self._bar.stop()

    def _watch(self) -> None:
        """Show what the language models do while a shard takes its hours; piped output gets a line a minute."""
        ticks = 0
        while not self._left.wait(_TICK):
            ticks += 1
            line = self._pipeline.models.meter.line()
            if not line or self._current is None:
                continue
            self._bar.update(self._tasks[self._current], asked=line)
            if not self.quiet and not _ERR.is_terminal and ticks % round(60 / _TICK) == 0:
                _ERR.print(f"   {self._current}: {line}")

    def shards(self, number: int, run: str, done: int, count: int) -> None:
        """Show one bar a stage run that had something to do; piped output gets a line a finished stage instead."""
        if run not in self._tasks:
            self._tasks[run] = self._bar.add_task(f"{number:>2} {run}", total=count, asked="")
        self._bar.update(self._tasks[run], completed=done, total=count)
        self._current = run if done < count else None
        if done == count and not self.quiet and not _ERR.is_terminal:
            _ERR.print(f"{number:>2} {run}: {count} of {count} shards")


class _Bars(Notes):
    """A bar, and the time left, for each part of a job that says how far it is."""

    def __init__(self, bar: Progress, quiet: bool) -> None:
        super().__init__(quiet)
        self._bar = bar
        self._tasks: dict[str, Any] = {}

    def advanced(self, what: str, by: int, total: int | None) -> None:
        """Move the bar of ``what``."""
        if what not in self._tasks:
            self._tasks[what] = self._bar.add_task(escape(what), total=total, share="")
        task = self._bar.tasks[self._tasks[what]]
        done = task.completed + by
        if total and done > total:  # the same once more, over other texts
            self._bar.reset(self._tasks[what], total=total)
            done = by
        share = f"{done / total:.0%}" if total else f"{done:,.0f}"
        self._bar.update(self._tasks[what], completed=done, total=total, share=share)


@contextmanager
def working(title: str, quiet: bool = False) -> Iterator[None]:
    """Print what is noted; on a terminal, a bar for ``title`` and one for each part that says how far it is."""
    from quit.common.stopping import on_stop

    bar = _progress(quiet, TextColumn("{task.fields[share]:>4}"), redirect_stdout=False)
    bar.add_task(escape(title), total=None, share="")
    on_stop(bar.stop)
    with bar, listening(_Bars(bar, quiet)):
        yield


def _table(*columns: str, title: str | None = None) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for column in columns:
        left = column.endswith("<")
        table.add_column(column.rstrip("<"), justify="left" if left else "right", overflow="fold")
    return table


def print_rows(rows: pa.Table) -> None:
    """Print the rows of a query."""
    import pyarrow as pa

    table = _table(
        *(f"{name}<" if pa.types.is_string(rows.schema.field(name).type) else name for name in rows.column_names)
    )
    for row in rows.to_pylist():
        table.add_row(*(escape("" if value is None else str(value)) for value in row.values()))
    _OUT.print(table)


def print_status(workspace: Workspace, pipeline: Pipeline | None) -> None:
    """Print a row a stage: state, rows made, what was left out and why."""
    table = _table("", "stage<", "state<", "made<", "left out<")
    for row in status(workspace, pipeline):
        state = row.state if row.state != "partial" else f"{row.shards_done} of {row.shards} shards"
        table.add_row(str(row.number), row.run, state, row.made, row.left_out)
    _OUT.print(table)


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
    table = _table("reader<", *REPLIES, title="\nReaders")
    for row in replies_rows(readers):
        table.add_row(*row)
    _OUT.print(table)
    for line in cut_replies(readers):
        _OUT.print(escape(line), style="yellow", soft_wrap=True)


def print_summary(workspace: Workspace) -> None:
    """Print what a build made, where it is and what to do next."""
    print_status(workspace, None)
    table = _table("questions<", "", title="\nFrom sources to splits")
    for name, count in funnel(workspace):
        table.add_row(name, f"{count:,}")
    _OUT.print(table)
    table = _table("hints", "passages", "label 2", "share", title="\nLabels by number of hints")
    for hints, passages, right in labels_by_hints(workspace):
        table.add_row(str(hints), f"{passages:,}", f"{right:,}", f"{right / passages:.1%}")
    _OUT.print(table)
    print_replies(readers_table(workspace))
    usage = usage_rows(workspace)
    if usage:
        table = _table(*(f"{name}<" if name == "language model" else name for name in USAGE), title="\nAsked, all runs")
        for row in usage:
            table.add_row(*row)
        _OUT.print(table)
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
    _OUT.print(f"\nThe tables are in {path}/tables, numbered in pipeline order. Next:")
    with workspace.connect() as connection:
        first = connection.execute("SELECT question_id FROM labels ORDER BY 1 LIMIT 1").fetchone()
    if first:
        _OUT.print(f"  quit show -w {path} {escape(first[0])}    everything about one question")
    _OUT.print(f"  quit export -w {path} --out exports    a Hugging Face dataset and the paper's release JSON")
    _OUT.print(f"  quit status -w {path} --left-out    what was left out, and why")
    _OUT.print(f"  quit report -w {path}    the dataset on one page")


def print_disagreements(agreement: JudgeAgreement | None, rows: Sequence[dict[str, Any]], limit: int) -> None:
    """Print how far two judges agree and where they do not; ``limit`` rows at most (0: all)."""
    if agreement is None:
        _OUT.print("There is one judge only: no language model judged this workspace.")
        return
    _OUT.print(escape(agreement.sentence()))
    table = _table("passages", "judge<", "second<", "answer<", "gold<", "question<")
    for row in rows[: limit or None]:
        verdicts = (_verdict(row["correct"]), f"{_verdict(row['second_correct'])} {row['second_probability'] or 0:.2f}")
        texts = (row["answer"], "; ".join(row["gold"]), row["question"])
        table.add_row(f"{row['passages']:,}", *verdicts, *(escape(text) for text in texts))
    if rows:
        _OUT.print(table)
    if limit and len(rows) > limit:
        _OUT.print(f"... {len(rows) - limit} more (--limit 0 shows all)")


def print_run_scores(scores: RunScores, split: str, settings: Benchmark) -> None:
    """Print a run's metrics with their intervals, and what to know about them."""
    _OUT.print(f"{escape(scores.name)}: {counted(scores.split, 'question')} of {escape(split)}, values in percent")
    table = _table("metric<", "value", f"{settings.level:.0%} interval")
    for row in scores.results.to_pylist():
        value, low, high = (f"{100 * row[name]:.2f}" for name in ("value", "low", "high"))
        table.add_row(row["metric"], value, f"{low} to {high}")
    _OUT.print(table)
    policy = "count as 0" if settings.without_relevant == "zero" else "are left out of the metrics with rel=2"
    for count, what in (
        (scores.missing, "of the split not in the run: they count as 0"),
        (scores.others, f"of the run not in the split {split}: not scored"),
        (scores.without_full, f"without a passage of label 2: they {policy}"),
    ):
        if count:
            _OUT.print(escape(f"- {counted(count, 'question')} {what}"), soft_wrap=True)
    if scores.unknown:
        _OUT.print(f"- {counted(scores.unknown, 'line')} with a passage that the release does not have: not relevant")


def print_plan(plan: Plan) -> None:
    """Print what a build will ask, a row a model and role, and what was assumed."""
    _OUT.print(f"{plan.questions:,} questions, {plan.passages:,} passages")
    table = _table("model<", "role<", "replies", "kept", "prompt", "computed", "reply", "hours", "cost", "uncached")
    for line in plan.lines:
        hours = "?" if line.seconds is None else f"{line.seconds / 3600:,.2f}"
        tokens = (_short(number) for number in (line.prompt_tokens, line.computed, line.completion_tokens))
        costs = (f"{line.cost:,.2f}", f"{line.cost_uncached:,.2f}")
        table.add_row(line.model, line.role, _short(line.requests), _short(line.cached), *tokens, hours, *costs)
    if plan.lines:
        _OUT.print(table)
        _OUT.print("kept: replies in the generation cache already")
        _OUT.print("prompt, computed, reply: tokens; computed: prompt tokens left to compute with a prefix cache")
        _OUT.print("uncached: the cost without a prefix cache")
    for note in plan.notes:
        _OUT.print(f"- {escape(note)}")


def _short(number: float) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if number >= size:
            return f"{number / (1e3 if letter == 'k' else size):,.1f}{letter}"
    return f"{number:,.0f}"


def print_settings(loaded: Loaded) -> None:
    """Print every setting, its value and its origin."""
    table = _table("setting<", "value<", "from<")
    for key, value, origin in loaded.rows():
        table.add_row(key, escape(str(value)), origin)
    _OUT.print(table)


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
        _OUT.print(f"{out / manifest.format}: {len(manifest.files)} files, {size / 1e6:,.1f} MB")


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
        _print_passages(life["passages"], passages)
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
    table = _table("", "convergence", "hint<", "from<", title="\nHints")
    for row in life["hints"]:
        value = "" if row["convergence"] is None else f"{row['convergence']:.2f}"
        table.add_row(str(row["rank"]) if row["selected"] else "", value, escape(row["hint"]), escape(row["file"]))
    _OUT.print(table)
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


def _print_passages(rows: Sequence[dict[str, Any]], limit: int) -> None:
    readers = list(rows[0]["answers"])
    table = _table("passage<", "label", *(f"{name}<" for name in readers), title=f"\n{len(rows)} passages")
    for row in rows[: limit or None]:
        answers = (escape(row["answers"].get(name, "")) for name in readers)
        table.add_row(row["permutation"], str(row["label"]), *answers)
    _OUT.print(table)
    if limit and len(rows) > limit:
        _OUT.print(f"... {len(rows) - limit} more (--passages 0 shows all)")


def _print_verdicts(life: dict[str, Any]) -> None:
    table = _table("verdict<", "answer<", "given", "basis<", title="\nVerdicts")
    for row in life["verdicts"]:
        verdict = "unknown" if (row["correct"], row["basis"]) == (None, None) else _verdict(row["correct"])
        table.add_row(verdict, escape(row["answer"]), str(row["passages"]), row["basis"] or "published")
    if life["verdicts"]:
        _OUT.print(table)
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

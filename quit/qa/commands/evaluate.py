"""``quit evaluate``: score a run file, or compare a profile's judge with people."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from quit.commands.declaring import Group
from quit.commands.options import open_workspace, print_json, show, working
from quit.qa.commands import options
from quit.qa.commands.options import load_settings, settings_for
from quit.render.table import Table
from quit.text.words import counted

if TYPE_CHECKING:
    from quit.qa.benchmark.runfile import RunScores
    from quit.qa.settings import Benchmark

app = Group("Score a run file; measure a judge against people and another judge.")


@app.command("run")
def run(
    run_file: Annotated[Path, typer.Argument(metavar="RUN")],
    workspace: options.WorkspaceOrRelease = Path("workspace"),
    split: str = "test",
    set_: options.Set = None,
    retriever: str = "",
    reranker: str = "",
    out: Path | None = None,
    as_json: options.Json = False,
) -> None:
    """Score a ranking of passages by any system, with the metrics and intervals of `quit benchmark run`.

    Question and passage ids are those of `quit export`; settings of a workspace are those of its last build.

    Example: `quit evaluate run bm25.run -w W/releases/v1`

    Args:
        run_file: A line: question Q0 passage rank score name; or a result file of the paper's programs, whose layout
            no such file has confirmed: retriever.json, reranker.json, or rag.json with answers of readers.
        split: Questions: train, dev, test or all.
        retriever: Its name in the table; if not given, the run's.
        reranker: Its name in the table.
        out: Folder: the scores are added to its results.parquet, as of `quit benchmark run`.
    """
    from quit.dataset.dataset import Dataset
    from quit.dataset.release import is_release
    from quit.dataset.workspace import dataset_of
    from quit.engine.planning import last_build
    from quit.qa.benchmark.runfile import add_results, score_run

    settings = settings_for(workspace, None, set_).benchmark
    with working("evaluate", as_json):
        has_release = is_release(workspace)
        dataset = Dataset.of_release(workspace) if has_release else dataset_of(last_build(open_workspace(workspace)))
        scores = score_run(run_file, dataset, split, settings, retriever, reranker)
        if out is not None:
            add_results(scores.results, out, dataset, split)
    if as_json:
        columns = ["reader", "strategy", "k", "metric", "value", "low", "high", "questions"]
        counts = {name: value for name, value in vars(scores).items() if name != "results"}
        print_json({**counts, "metrics": scores.results.select(columns).to_pylist()})
    else:
        _print_run_scores(scores, split, settings)


@app.command("judge")
def judge(
    pairs: Path, profile: options.NamedProfile = "paper", set_: options.Set = None, as_json: options.Json = False
) -> None:
    """Agreement of a profile's judge with human verdicts and with the equivalence model.

    Example: `quit evaluate judge pairs.jsonl --profile server`

    Args:
        pairs: JSONL of {question, answers, candidate, label}.
    """
    from quit.models.factory import Models
    from quit.operations import instruments

    figures = instruments.judge(pairs, Models(load_settings(profile, set_)))
    show(figures, as_json, _lines(figures))


@app.command("judges")
def judges(
    workspace: options.WorkspaceOrRelease = Path("workspace"),
    limit: Annotated[int, typer.Option(min=0)] = 20,
    as_json: options.Json = False,
) -> None:
    """Agreement of judges with people and one another, also by length of the answer, reader and family of the reader.

    Then the answers on which judges differ.

    Example: `quit evaluate judges -w W --limit 0`

    Args:
        limit: Disagreements to list; 0 for all.
    """
    from quit.engine.request import settings_of
    from quit.release.view import open_to_read
    from quit.status.judges import JudgeAgreement, agreement_tables, disagreement_table, disagreements, judge_figures

    source = open_to_read(workspace)
    figures, rows = judge_figures(source, settings_of(source)), disagreements(source)
    tables: list[Any] = agreement_tables([JudgeAgreement(**row) for row in figures["agreements"]])
    none = ["There is one judge only, and people settled none of its answers. Another judge: quit release rejudge"]
    tables += [disagreement_table(rows, limit)] if rows else []
    show({**figures, "disagreements": rows}, as_json, tables or none)


def _lines(figures: dict[str, Any]) -> list[str]:
    lines = []
    for name, value in figures.items():
        for item in value if isinstance(value, list) else [value]:
            lines.append(f"{name}: {item:.4f}" if isinstance(item, float) else f"{name}: {item}")
    return lines


def _print_run_scores(scores: RunScores, split: str, settings: Benchmark) -> None:
    """Print a run's metrics with their intervals, and what to know about them."""
    from quit.render import terminal

    terminal.line(f"{escape(scores.name)}: {counted(scores.split, 'question')} of {escape(split)}, values in percent")
    rows = []
    for row in scores.results.to_pylist():
        value, low, high = (f"{100 * row[name]:.2f}" for name in ("value", "low", "high"))
        read_by = f"{row['reader']} {row['strategy']} k={row['k']}: " if row["reader"] else ""
        rows.append((read_by + row["metric"], value, f"{low} to {high}"))
    terminal.show([Table("", ("metric", "value", "95% interval"), rows)])
    policy = "0 in metrics with rel=2" if settings.without_relevant == "zero" else "left out of metrics with rel=2"
    for count, what in (
        (scores.missing, "of the split not in the run: 0 in every metric that counts them"),
        (scores.others, f"of the run not in the split {split}, such as {scores.first_other}: not scored"),
        (scores.without_full, f"without a passage of label 2: {policy}"),
    ):
        if count:
            terminal.sentence(f"- {counted(count, 'question')} {what}")
    if scores.unknown:
        lines = f"{counted(scores.unknown, 'line')} with a passage that the release does not have"
        terminal.sentence(f"- {lines}, such as {scores.first_unknown}: not relevant")

"""``quit evaluate``: score a run file, or compare a profile's judge with people."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from quit.commands import options
from quit.commands.options import load_settings, open_workspace, print_json, show, working

app = typer.Typer(help="Score a run file; measure a judge against people and another judge.", no_args_is_help=True)


@app.command("run")
def run(
    run_file: Annotated[Path, typer.Argument(metavar="RUN", help="A line: question Q0 passage rank score name.")],
    release: Annotated[Path | None, typer.Option("--release", "-r", help="Folder of a release.")] = None,
    workspace: options.Workspace = Path("workspace"),
    split: Annotated[str, typer.Option("--split", help="Questions: train, dev, test or all.")] = "test",
    by: options.By = None,
    set_: options.Set = None,
    as_json: options.Json = False,
) -> None:
    """Score a ranking of passages by any system, with the metrics and intervals of `quit benchmark run`.

    Question and passage ids are those of `quit export`. Without --release the labels are the workspace's own.

    Example: `quit evaluate run bm25.run --release W/releases/v1`
    """
    from quit.commands.console import print_run_scores
    from quit.dataset.dataset import Dataset
    from quit.dataset.workspace import dataset_of
    from quit.engine.planning import last_build
    from quit.systems.benchmark.runfile import score_run

    settings = load_settings("embedded", [*(set_ or ()), *filter(None, [by])]).benchmark
    with working("evaluate", as_json):
        dataset = Dataset.of_release(release) if release else dataset_of(last_build(open_workspace(workspace)))
        scores = score_run(run_file, dataset, split, settings)
    if as_json:
        results = {"metrics": scores.results, "ideal": scores.ideal}
        columns = ["metric", "value", "low", "high", "questions"]
        rows = {name: table.select(columns).to_pylist() for name, table in results.items() if len(table)}
        counts = {name: value for name, value in vars(scores).items() if name not in ("results", "ideal", "sets")}
        print_json({**counts, **rows})
    else:
        print_run_scores(scores, split, settings)


@app.command("judge")
def judge(
    pairs: Annotated[Path, typer.Argument(help="JSONL of {question, answers, candidate, label}.")],
    profile: options.NamedProfile = "paper",
    set_: options.Set = None,
    as_json: options.Json = False,
) -> None:
    """Agreement of a profile's judge with human verdicts and with the equivalence model.

    Example: `quit evaluate judge pairs.jsonl --profile server`
    """
    from quit.models.factory import Models
    from quit.operations import instruments

    figures = instruments.judge(pairs, Models(load_settings(profile, set_)))
    show(figures, as_json, _lines(figures))


@app.command("judges")
def judges(
    workspace: options.Workspace = Path("workspace"),
    limit: Annotated[int, typer.Option("--limit", min=0, help="Disagreements to list; 0 for all.")] = 20,
    as_json: options.Json = False,
) -> None:
    """Agreement of the judges of a workspace with one another, and the answers on which they differ.

    Example: `quit evaluate judges -w W --limit 0`
    """
    from dataclasses import asdict

    from quit.commands.console import print_disagreements
    from quit.status.summary import disagreements, judge_agreement

    source = open_workspace(workspace)
    agreements, rows = judge_agreement(source), disagreements(source)
    if as_json:
        print_json({"agreement": [*map(asdict, agreements)], "disagreements": rows})
    else:
        print_disagreements(agreements, rows, limit)


def _lines(figures: dict[str, Any]) -> list[str]:
    lines = []
    for name, value in figures.items():
        for item in value if isinstance(value, list) else [value]:
            lines.append(f"{name}: {item:.4f}" if isinstance(item, float) else f"{name}: {item}")
    return lines

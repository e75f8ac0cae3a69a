"""``quit sunar``: neighbourhood aware retrieval and its ablations on a corpus, and what they did."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from quit.commands.options import (
    CorpusOption,
    IndexOption,
    JsonOption,
    NamedProfileOption,
    QuestionKindOption,
    QuestionSourceOption,
    SetOption,
    load_settings,
    local_folder,
    show,
)
from quit.common.terminal import echo

app = typer.Typer(help="Answer complex questions with SUNAR, and compare it with its ablations.", no_args_is_help=True)

OutOption = Annotated[
    Path, typer.Option("--out", "-o", **local_folder, help="Folder of the runs, one below it a variant.")
]


@app.command()
def run(
    corpus: CorpusOption,
    graph: Annotated[Path | None, typer.Option("--graph", help="Folder of its graph: quit graph build.")] = None,
    index: IndexOption = None,
    queries: Annotated[
        Path | None,
        typer.Option("--queries", help="JSONL of {query_id, text, answers}; the corpus's own questions if not given."),
    ] = None,
    source: QuestionSourceOption = None,
    kind: QuestionKindOption = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="Only the first so many questions.")] = None,
    variant: Annotated[
        list[str] | None, typer.Option("--variant", help="What to run; repeat for several. See `quit sunar variants`.")
    ] = None,
    out: OutOption = Path("sunar"),
    profile: NamedProfileOption = "embedded",
    set_: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Answer questions, keep every step as JSON, print the figures.

    What has a trace is not run again: a killed run resumes at the unfinished question.

    Example: `quit sunar run --corpus C --graph G --variant sunar-r --variant rerank --set sunar.c=50`
    """
    from quit.models.factory import Models
    from quit.systems.sunar.experiment import open_place, run_variants

    settings = load_settings(profile, set_)
    models = Models(settings)
    store = open_place(
        settings,
        models,
        corpus,
        graph=graph,
        indexes=index or (),
        queries=queries,
        source=source,
        kind=kind,
        limit=limit,
    )

    def say(text: str) -> None:
        echo(text, err=True)

    figures = run_variants(settings, models, store, variant or ["sunar"], out, say)
    show(figures, as_json, _table(figures))


@app.command()
def trace(
    query_id: Annotated[str, typer.Argument(help="Id of the question.")],
    out: OutOption = Path("sunar"),
    variant: Annotated[
        str | None, typer.Option("--variant", help="Whose trace; if not given, that of every variant which has one.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show what was asked, retrieved, sampled and answered for one question, step by step.

    Example: `quit sunar trace musique:2hop__574419_270105 --variant sunar`
    """
    from quit.errors import InputError
    from quit.systems.sunar.run import read_trace, runs_in
    from quit.systems.sunar.show import lines

    folders = [out / variant] if variant else runs_in(out)
    if not folders:
        raise InputError(f"There is no run in {out}. Make one: quit sunar run")
    traces: dict[str, Any] = {}
    fault: InputError | None = None
    for folder in folders:
        try:
            traces[folder.name] = read_trace(folder, query_id)
        except InputError as error:
            fault = error
    if not traces and fault:
        raise fault
    show(traces, as_json, (line for name, steps in traces.items() for line in (f"== {name}", *lines(steps), "")))


@app.command()
def compare(
    before: Annotated[Path, typer.Argument(help="Folder of a run, such as sunar/rerank.")],
    after: Annotated[Path, typer.Argument(help="Folder of another, such as sunar/sunar-r.")],
    top: Annotated[int, typer.Option("--top", min=1, help="Documents that are read.")] = 10,
    resamples: Annotated[int, typer.Option("--resamples", min=10, help="Resamples of interval and test.")] = 10_000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of these.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Say how far two runs differ (paired tests), which relevant documents one finds and the other does not, and
    through whose neighbours.

    Example: `quit sunar compare sunar/rerank sunar/sunar-r`
    """
    from quit.systems.sunar.compare import compare_runs

    comparison = compare_runs(before, after, top, resamples=resamples, seed=seed)
    lines = []
    for name, value in comparison.items():
        if name == "differences":
            lines += [f"{measure}: {_difference(row)}" for measure, row in value.items()]
        elif name == "kinds":
            for kind, recalls in value.items():
                pairs = [(key, pair) for key, pair in recalls.items() if key != "questions"]
                recall = "; ".join(f"{key} {earlier:.3f} -> {later:.3f}" for key, (earlier, later) in pairs)
                lines.append(f"  {kind or 'all'} ({recalls['questions']} questions): recall of {recall}")
        else:
            lines.append(f"{name.replace('_', ' ')}: {value}")
    show(comparison, as_json, lines)


@app.command()
def variants(profile: NamedProfileOption = "embedded", set_: SetOption = None, as_json: JsonOption = False) -> None:
    """List the systems and ablations that can be run, with the settings that they run with.

    Example: `quit sunar variants -p paper`
    """
    from quit.systems.sunar.variants import VARIANTS, effective

    given = load_settings(profile, set_).sunar
    own = {name: effective(given, name).model_dump(mode="json") for name in VARIANTS}
    show(
        {name: {"what": VARIANTS[name][0], "settings": settings} for name, settings in own.items()},
        as_json,
        (
            f"{name:22} {VARIANTS[name][0]:52} {' '.join(f'{key}={settings[key]}' for key in _EFFECTIVE)}"
            for name, settings in own.items()
        ),
    )


_EFFECTIVE = "retrieval planner reading asu mer first c feedback_documents".split()


def _difference(row: dict[str, Any]) -> str:
    return (
        f"{row['before']:.4f} -> {row['after']:.4f}, difference {row['difference']:+.4f} [{row['low']:.4f}, "
        f"{row['high']:.4f}], p = {row['p_randomisation']:.4f} (randomisation), {row['p_t']:.4f} (t), "
        f"{row['questions']} questions"
    )


_COLUMNS = "cover_em nDCG@10 Recall@1 Recall@10 Recall@100 pool_recall pool_size sub_questions".split()


def _table(figures: dict[str, dict[str, Any]]) -> list[str]:
    lines = [f"{'variant':22}" + "".join(f"{name:>14}" for name in _COLUMNS)]
    for variant, scores in figures.items():
        cells = (f"{scores[name]:>14.4f}" if scores[name] is not None else f"{'-':>14}" for name in _COLUMNS)
        lines.append(f"{variant:22}" + "".join(cells))
    first = next(iter(figures.values()))
    counts = f"{first['questions']} questions, {first['answered_for']} with answers, {first['judged']}"
    lines.append(f"{counts} with relevant documents")
    asked = {variant: scores["replies"] for variant, scores in figures.items() if scores["replies"]}
    if asked:
        lines += ["", f"{'language model':22}" + "".join(f"{name.replace('_', ' '):>18}" for name in _REPLIES)]
    for variant, replies in asked.items():
        lines.append(f"{variant:22}" + "".join(f"{replies[name]:>18,}" for name in _REPLIES))
    for variant, replies in asked.items():
        lines.append(f"{variant}: plans ended by {_counted(replies['ended'])}; answers from")
        lines[-1] += f" {_counted(replies['prediction_from'])}"
    return lines


_REPLIES = "calls prompt_tokens completion_tokens cut empty unread unread_plans unread_mer".split()


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} ({count})" for name, count in sorted(counts.items(), key=lambda row: -row[1]))

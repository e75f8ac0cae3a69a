"""``quit sunar``: neighbourhood aware retrieval and its ablations on a corpus, and what they did."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from quit.commands.declaring import Group
from quit.commands.options import show, working
from quit.qa.commands import options
from quit.qa.commands.options import load_settings
from quit.render.table import Table, number
from quit.text.words import split_names

app = Group("Answer complex questions with SUNAR, and compare it with its ablations.")

OutOption = Annotated[Path, typer.Option("-o", help="Folder of the runs, one below it a variant.")]
_EFFECTIVE = "retrieval planner reading asu mer first c feedback_documents".split()
_COLUMNS = "cover_em nDCG@10 Recall@1 Recall@10 Recall@100 pool_recall pool_size sub_questions".split()
_REPLIES = "calls prompt_tokens completion_tokens cut empty unread unread_plans unread_mer".split()


@app.command()
def run(
    corpus: options.Corpus,
    graph: Path | None = None,
    index: options.Index = None,
    first: Path | None = None,
    queries: Path | None = None,
    source: options.QuestionSource = None,
    kind: options.QuestionKind = None,
    questions: options.QuestionLimit = None,
    variant: list[str] | None = None,
    out: OutOption = Path("sunar"),
    profile: options.NamedProfile = "embedded",
    set_: options.Set = None,
    as_json: options.Json = False,
) -> None:
    """Answer questions, keep every step as JSON, print the figures.

    A question that has a trace and did not change is not run again: a killed run resumes.

    Example: `quit sunar run --corpus C --graph G --variant sunar-r --variant rerank --set sunar.c=50`

    Args:
        graph: Folder of its graph: quit graph build.
        first: Rankings of the questions in place of --index: a TREC run, or `.json` of {id: {document: score}}.
        queries: JSONL of {query_id, text, answers}; the corpus's own questions if not given.
        variant: What to run; repeat for several, or put commas between them. See `quit sunar variants`.
    """
    from quit.models.factory import Models
    from quit.qa.indexes.built import BuiltCorpus
    from quit.qa.sunar.experiment import run_variants
    from quit.qa.sunar.opening import open_queries, open_stack

    settings = load_settings(profile, set_)
    models, documents = Models(settings), BuiltCorpus.open(corpus)
    selection = open_queries(documents, settings.sunar, queries, source, kind, questions)
    stack = open_stack(settings, models, documents, selection, graph=graph, indexes=index or (), first=first)
    with working("sunar", as_json):
        names = [name for text in variant or ["sunar"] for name in split_names(text)]
        figures = run_variants(settings, models, stack, selection, names, out)
    show(figures, as_json, _pieces(figures))


@app.command()
def trace(
    query_id: str, out: OutOption = Path("sunar"), variant: str | None = None, as_json: options.Json = False
) -> None:
    """Show what was asked, retrieved, sampled and answered for one question, step by step.

    Example: `quit sunar trace musique-2hop__574419_270105 --variant sunar`

    Args:
        query_id: Id of the question.
        variant: Whose trace; if not given, that of every variant which has one.
    """
    from quit.errors import InputError
    from quit.qa.sunar.run import read_trace, runs_in
    from quit.qa.sunar.show import lines

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
    before: Path, after: Path, top: Annotated[int, typer.Option(min=1)] = 10, as_json: options.Json = False
) -> None:
    """Say how far two runs differ (paired tests), which relevant documents one finds and the other does not, and
    through whose neighbours.

    Example: `quit sunar compare sunar/rerank sunar/sunar-r`

    Args:
        before: Folder of a run, such as sunar/rerank.
        after: Folder of another, such as sunar/sunar-r.
        top: Documents that are read.
    """
    from quit.qa.sunar.compare import compare_runs

    gains, by_measure = compare_runs(before, after, top)
    differences = []
    for measure, row in by_measure.items():
        interval = f"{row.low:.4f} to {row.high:.4f}"
        values = (f"{row.before:.4f}", f"{row.after:.4f}", f"{row.difference:+.4f}")
        p_values = (number(row.p_randomisation, ".4f"), number(row.p_t, ".4f"))
        differences.append((measure, *values, interval, *p_values, row.questions))
    kinds = []
    for kind, recalls in gains["kinds"].items():
        shares = [f"{recall:.3f}" for recall in (*recalls["pool"], *recalls[f"top_{top}"])]
        kinds.append((kind or "all", recalls["questions"], *shares))
    counts = [(name.replace("_", " "), value) for name, value in gains.items() if name != "kinds"]
    heads = ("measure", "before", "after", "difference", "95% interval", "p, randomisation", "p, t test", "questions")
    recalls_of = ("kind", "questions", "pool", "pool after", f"top {top}", f"top {top} after")
    pieces = [
        Table("Differences", heads, differences),
        Table("Relevant documents", ("", "count"), counts),
        Table("Recall by kind of question", recalls_of, kinds),
    ]
    show({**gains, "differences": {name: asdict(row) for name, row in by_measure.items()}}, as_json, pieces)


@app.command()
def variants(
    profile: options.NamedProfile = "embedded", set_: options.Set = None, as_json: options.Json = False
) -> None:
    """List the systems and ablations that can be run, with the settings that they run with.

    Example: `quit sunar variants -p paper`
    """
    from quit.qa.sunar.variants import VARIANTS, effective

    settings = load_settings(profile, set_).sunar
    by_name = {name: effective(settings, name).model_dump(mode="json") for name in VARIANTS}
    rows = [(name, VARIANTS[name].title, *(values[key] for key in _EFFECTIVE)) for name, values in by_name.items()]
    described = {name: {"what": VARIANTS[name].title, "settings": values} for name, values in by_name.items()}
    show(described, as_json, [Table("", ("variant", "system", *_EFFECTIVE), rows, text=(1, 2, 3, 4))])


def _pieces(figures: dict[str, dict[str, Any]]) -> list[Table | str]:
    rows = [(variant, *(number(scores[name], ".4f") for name in _COLUMNS)) for variant, scores in figures.items()]
    first = next(iter(figures.values()))
    counts = f"{first['questions']} questions, {first['answered_for']} with answers, {first['judged']}"
    pieces: list[Table | str] = [Table("", ("variant", *_COLUMNS), rows, note=f"{counts} with relevant documents")]
    replies = {variant: scores["replies"] for variant, scores in figures.items() if scores["replies"]}
    if replies:
        heads = ("language model", *(name.replace("_", " ") for name in _REPLIES))
        counts_of = [(variant, *(f"{row[name]:,}" for name in _REPLIES)) for variant, row in replies.items()]
        pieces.append(Table("", heads, counts_of))
    for variant, row in replies.items():
        ended, sources = (_frequencies(row[name]) for name in ("ended", "prediction_from"))
        pieces.append(f"{variant}: plans ended by {ended}; answers from {sources}")
    return pieces


def _frequencies(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} ({count})" for name, count in sorted(counts.items(), key=lambda row: -row[1]))

"""``quit bandits``: query decomposition as a bandit, and reports from what a policy picked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from quit.commands.declaring import Group
from quit.commands.options import show, working
from quit.common.terminal import echo
from quit.errors import MissingDependency, SettingsError
from quit.qa.commands import options
from quit.qa.commands.options import load_settings
from quit.render.table import Table
from quit.text.words import counted, split_names

if TYPE_CHECKING:
    from quit.qa.bandits.experiment import Grid
    from quit.qa.bandits.policies import Policy
    from quit.qa.bandits.rank_relevance import RankRelevance
    from quit.qa.bandits.requests import About, Measured
    from quit.qa.bandits.tuning import Trial
    from quit.qa.settings import QaSettings

app = Group("Choose which sub-query's ranking to read on (Petcu et al.).")


def _budgets(text: str) -> str:
    """Return the override that ``10..100`` (in tens) or ``5,10,20`` stands for."""
    try:
        if ".." in text:
            low, high = (int(part) for part in text.split(".."))
            percents: list[float] = list(range(low, high + 1, 10))
        else:
            percents = [float(part) for part in text.split(",")]
    except ValueError:
        percents = []
    if not percents or any(not 0 < percent <= 100 for percent in percents):
        raise SettingsError(f"--budget {text!r}: write percents above 0 and up to 100, as 10..100 or 5,10,20.")
    return f"bandits.budgets={[percent / 100 for percent in percents]}"


VectorsOption = Annotated[
    Path | None,
    typer.Option(help="A dense index whose vectors tell how alike documents are; else they are encoded now."),
]
OutOption = Annotated[Path, typer.Option("-o", help="Folder of the tables and the plot.")]
ArmsOption = Annotated[
    str,
    typer.Option(
        help="`sub-questions` of the source; `two-level`: these, refined with titles that they retrieve; `written` by "
        "the language model that bandits.language_model names; or a JSONL file of {query_id, arms, parents}."
    ),
]
RelevanceOption = Annotated[
    Literal["qrels", "scores", "judge"],
    typer.Option(
        help="What policies observe: `qrels`, `scores` of the first stage, or a `judge` (the language model, if one is "
        "named)."
    ),
]
BudgetsOption = Annotated[
    str | None,
    typer.Option(
        "-b", metavar="PERCENTS", parser=_budgets, help="Percent of all documents: 10..100 (in tens), or 5,10,20."
    ),
]
RunsOption = Annotated[
    str | None, typer.Option(metavar="N", parser="bandits.runs={}".format, help="Runs per request and policy.")
]
"""Both stand for an override of a setting."""


@app.command()
def run(
    corpus: options.Corpus,
    index: options.Index = None,
    vectors: VectorsOption = None,
    out: OutOption = Path("bandits"),
    arms: ArmsOption = "sub-questions",
    relevance: RelevanceOption = "qrels",
    policies: str = "all",
    budget: BudgetsOption = None,
    runs: RunsOption = None,
    tune: str | None = None,
    source: options.QuestionSource = None,
    kind: options.QuestionKind = None,
    questions: options.QuestionLimit = None,
    profile: options.NamedProfile = "embedded",
    set_: options.Set = None,
    as_json: options.Json = False,
) -> None:
    """Run policies over budgets: precision, recall, alpha-nDCG, and on two levels what opening arms step by step gains;
    whether relevance falls with the rank.

    Writes bandits.csv, bandits.json, bandits.png and bandits-recall.png.

    Example: `quit bandits run --corpus C --index I --budget 10..100 --policies all --runs 1000`

    Args:
        policies: `all`, or names separated by commas.
        tune: A policy whose tree is tried with other n, tau and lambda: bandits.trials.
    """
    from quit.qa.bandits import files
    from quit.qa.bandits.experiment import evaluate
    from quit.qa.bandits.policies import policies as named
    from quit.qa.bandits.rank_relevance import rank_relevance
    from quit.qa.bandits.tuning import trials_of
    from quit.qa.folders import building

    settings = load_settings(profile, [*(set_ or ()), *filter(None, [budget, runs])])
    selected = named(settings.bandits, split_names(policies))
    tuned = named(settings.bandits, [tune])[0] if tune else None
    with working("bandits", as_json), building(out, "bandit run"):
        measured = _measured(corpus, index, vectors, arms, relevance, (source, kind, questions), settings, selected)
        requests = measured.requests
        trials = trials_of(requests, tuned, settings.bandits) if tuned else []
        trees = any((request.parents >= 0).any() for request in requests)
        grid = evaluate(requests, selected, settings.bandits, hierarchical=trees)
        relevance_by_rank = rank_relevance(requests)
        tuning = {"tuned": {"policy": tuned.name, "trials": [trial._asdict() for trial in trials]}} if tuned else {}
        summary = files.write(grid, out, {**measured.about, **tuning, "rank_relevance": relevance_by_rank})
        names = [files.TABLE, files.SUMMARY]
        try:
            for metric in files.CURVES:
                title = f"{counted(len(grid.requests), 'request')}, arms: {Path(arms).name}"
                names.append(files.plot(grid, out, metric, title).name)
        except MissingDependency as error:
            echo(str(error), err=True)
    lines = [*_tables(grid), *_analysed(relevance_by_rank, tune, trials), *_replies(measured.about)]
    show(summary, as_json, [*lines, f"{counted(len(grid.requests), 'request')}. {out}: {', '.join(names)}"])


@app.command()
def report(
    corpus: options.Corpus,
    index: options.Index = None,
    vectors: VectorsOption = None,
    out: OutOption = Path("reports"),
    arms: ArmsOption = "sub-questions",
    relevance: RelevanceOption = "qrels",
    policies: str = "full,random,random-rank-aware,epsilon-greedy,bernoulli-top-5,top-k-ucb-diversity",
    budget: Annotated[float, typer.Option("-b", min=0, max=100)] = 20,
    repeats: Annotated[int, typer.Option(min=1)] = 1,
    source: options.QuestionSource = None,
    kind: options.QuestionKind = None,
    questions: options.QuestionLimit = None,
    profile: options.NamedProfile = "embedded",
    set_: options.Set = None,
    as_json: options.Json = False,
) -> None:
    """Let a language model write a cited report from the documents that each policy picked, and judge it.

    Writes reports.jsonl and reports.json: citation support, nugget coverage, sentence support. Needs
    bandits.language_model.

    Example: `quit bandits report --corpus C --budget 20 -p server --set bandits.language_model=judge`

    Args:
        policies: Names separated by commas; `full` reads all documents.
        budget: Percent of all documents.
        repeats: Runs of a policy, each with its own reports.
    """
    from quit.qa.bandits.picked import FULL, reports, write_reports
    from quit.qa.bandits.policies import policies as named
    from quit.qa.folders import building

    settings = load_settings(profile, set_)
    names = split_names(policies)
    selected = named(settings.bandits, [name for name in names if name != FULL]) if {*names} != {FULL} else []
    with working("bandits", as_json), building(out, "bandit run"):
        selection = source, kind, questions
        measured = _measured(corpus, index, vectors, arms, relevance, selection, settings, selected, True)
        about = {**measured.about, "budget": budget / 100}
        with_full = [None, *selected] if FULL in names else selected
        scored = reports(measured, with_full, budget / 100, settings, repeats)
        summary = write_reports(scored, out, about)
    lines = [*_report_tables(summary), *_replies(measured.about), f"{out}: reports.jsonl, reports.json"]
    show({**about, "policies": summary}, as_json, lines)


def _measured(
    corpus: Path,
    index: list[Path] | None,
    vectors: Path | None,
    arms: str,
    relevance: RelevanceOption,
    selection: tuple[str | None, str | None, int | None],
    settings: QaSettings,
    policies: Sequence[Policy],
    generates: bool = False,
) -> Measured:
    """Return the requests of a corpus; ``generates``: a language model is needed in any case."""
    from quit.models.factory import Models
    from quit.qa.bandits.requests import measure
    from quit.qa.opening import language_model, open_collection, select_questions

    models, name = Models(settings), settings.bandits.language_model
    asks = generates or arms == "written" or name
    generator = language_model(name, models, settings, "bandits.language_model") if asks else None
    collection = open_collection(corpus, index or (), models, settings, vectors=vectors)
    diverse = any(policy.novelty is not None for policy in policies)
    return measure(
        collection, select_questions(collection.corpus, *selection), arms, relevance, settings, generator, diverse
    )


def _report_tables(summary: Sequence[dict[str, Any]]) -> list[Table | str]:
    """Return the scores of each policy's reports, and what became of their sentences and verdicts."""
    measures = ("citation_support", "nugget_coverage", "sentence_support")
    counts = ("reports", "cut", "empty", "without_citation", "citations", "invented", "verdicts", "unread")
    rows = []
    for row in summary:
        means = (f"{row[name]:.3f} ± {row[f'{name}_run_sd']:.3f}" for name in measures)
        rows.append((row["policy"], f"{row['documents']:.1f}", *means))
    count_rows = [(row["policy"], *(row[name] for name in counts)) for row in summary]
    heads, count_heads = ([name.replace("_", " ") for name in names] for names in (measures, counts))
    note = "Cut: at reports.max_new_tokens. Invented: citations of documents that do not exist. Unread: count as No."
    return [
        Table("", ("policy", "documents", *heads), rows, note="± is the standard deviation over runs."),
        Table("", ("policy", *count_heads), count_rows, note=note),
    ]


def _analysed(fit: RankRelevance, policy: str | None, trials: Sequence[Trial]) -> list[str]:
    """Return whether relevance falls with the rank, and the best trial of a policy's tree."""
    lines = []
    if fit["requests"]:
        lines.append(
            f"Relevance falls with the rank in {fit['negative']} of {fit['requests']} requests: mean slope "
            f"{fit['slope']:.4f}, mean reciprocal rank {fit['mrr']:.3f}"
        )
    for best in trials[:1]:
        lines.append(
            f"Best of {len(trials)} trees for {policy}: n {best.expand_after}, tau {best.expand_above:g}, lambda "
            f"{best.inheritance:g}, precision {best.precision:.3f}"
        )
    return lines


def _replies(about: About) -> list[str]:
    """Return what a language model's replies came to, where one wrote the arms or judged documents."""
    lines = []
    if counts := about.get("decomposition_replies"):
        lines.append(
            f"Decompositions: {counts['replies']} replies, {counts['unread']} without a list, {counts['cut']} cut at "
            f"the limit of tokens; {counts['without_sub_queries']} of {counts['decompositions']} decompositions are "
            "the request itself."
        )
    if verdicts := about.get("relevance_verdicts"):
        lines.append(
            f"Relevance: {verdicts['verdicts']} verdicts, {verdicts['unread']} could not be read and count as not "
            "relevant."
        )
    return lines


def _tables(grid: Grid) -> list[Table | str]:
    """Return precision by policy and budget, what trees gain, and which requests score 0."""
    from quit.qa.bandits.metrics import budget_documents

    budgets = grid.settings.budgets
    shares = list(budgets)
    if len(shares) > 6:
        shares = [share for share in budgets if round(share * 100) in (5, 10, 20, 30, 50, 100)] or shares
    rows = [
        (policy.name, *(f"{grid.value(policy.name, share).mean():.3f}" for share in shares)) for policy in grid.policies
    ]
    pieces: list[Table | str] = [Table("Precision", ("budget", *(f"{share * 100:g}%" for share in shares)), rows)]
    trees = []
    for row in grid.trees:
        if row.budget == min(budgets):
            gain = "" if row.gain is None else f"{row.gain:.1%}"
            trees.append((row.policy, row.metric, f"{row.flat:.3f}", f"{row.tree:.3f}", gain))
    if trees:
        title = f"Arms opened step by step against all at once, budget {min(budgets) * 100:g}%"
        pieces.append(Table(title, ("policy", "metric", "flat", "tree", "gain"), trees, text=(1,)))
    if grid.left_out or grid.without_relevant:
        pieces.append(
            f"Left out: {grid.left_out} requests below bandits.least_relevant. {grid.without_relevant} of those "
            "measured retrieve nothing relevant and score 0."
        )
    if zeros := sum(budget_documents(int(size), [min(budgets)]) == [0] for size in grid.sizes):
        pieces.append(
            f"{zeros} of {len(grid.sizes)} requests have too few documents to observe one at {min(budgets) * 100:g}% "
            "and score 0 there. Leave out the lowest --budget, or raise bandits.documents."
        )
    return pieces

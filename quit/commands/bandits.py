"""``quit bandits``: query decomposition as a bandit, and reports from what a policy picked."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from quit.commands.options import (
    CorpusOption,
    IndexOption,
    JsonOption,
    NamedProfileOption,
    QuestionKindOption,
    QuestionLimitOption,
    QuestionSourceOption,
    SetOption,
    load_settings,
    local_folder,
    show,
    split_names,
)
from quit.common.terminal import echo
from quit.errors import MissingDependency, SettingsError

app = typer.Typer(help="Choose which sub-query's ranking to read on (Petcu et al.).", no_args_is_help=True)


VectorsOption = Annotated[
    Path | None,
    typer.Option(
        "--vectors", help="A dense index whose vectors tell how alike documents are; else they are encoded now."
    ),
]
OutOption = Annotated[Path, typer.Option("--out", "-o", **local_folder, help="Folder of the tables and the plot.")]
ArmsOption = Annotated[
    str,
    typer.Option(
        "--arms",
        help="`sub-questions` of the source; `two-level`: these, refined with titles that they retrieve; `written` by "
        "the language model that bandits.language_model names; or a JSONL file of {query_id, arms, parents}.",
    ),
]
RelevanceOption = Annotated[
    Literal["qrels", "scores", "judge"],
    typer.Option(
        "--relevance",
        help="What policies observe: `qrels`, `scores` of the first stage, or a `judge` (the language model, if one is "
        "named).",
    ),
]


@app.command()
def run(
    corpus: CorpusOption,
    index: IndexOption = None,
    vectors: VectorsOption = None,
    out: OutOption = Path("bandits"),
    arms: ArmsOption = "sub-questions",
    relevance: RelevanceOption = "qrels",
    policies: Annotated[str, typer.Option("--policies", help="`all`, or names separated by commas.")] = "all",
    budget: Annotated[
        str | None, typer.Option("--budget", "-b", help="Percent of all documents: 10..100 (in tens), or 5,10,20.")
    ] = None,
    runs: Annotated[int | None, typer.Option("--runs", min=1, help="Runs a request and policy.")] = None,
    tune: Annotated[
        str | None,
        typer.Option("--tune", help="A policy whose tree is tried with other n, tau and lambda: bandits.trials."),
    ] = None,
    source: QuestionSourceOption = None,
    kind: QuestionKindOption = None,
    limit: QuestionLimitOption = None,
    profile: NamedProfileOption = "embedded",
    set_: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run policies over budgets: precision, recall, alpha-nDCG, and on two levels what opening arms step by step gains;
    whether relevance falls with the rank.

    Writes bandits.csv, bandits.json, bandits.png and bandits-recall.png.

    Example: `quit bandits run --corpus C --index I --budget 10..100 --policies all --runs 1000`
    """
    from quit.models.factory import Models
    from quit.systems.bandits import analysis, curves
    from quit.systems.bandits.experiment import evaluate
    from quit.systems.bandits.policies import policies as named

    given = list(set_ or ())
    if budget is not None:
        given.append(f"bandits.budgets={json.dumps(_shares(budget))}")
    if runs is not None:
        given.append(f"bandits.runs={runs}")
    settings = load_settings(profile, given)
    models = Models(settings)
    chosen = named(settings.bandits, split_names(policies))
    [tuned] = named(settings.bandits, [tune]) if tune else [None]
    began = time.perf_counter()
    diverse = any(policy.novelty is not None for policy in chosen)
    requests, _, _, about = _requests(
        corpus, index, vectors, arms, relevance, (source, kind, limit), settings, models, diverse
    )
    built = time.perf_counter()
    trees = any((request.parents >= 0).any() for request in requests)
    grid = evaluate(requests, chosen, settings.bandits, hierarchical=trees)
    done = time.perf_counter()
    about["rank_relevance"] = analysis.rank_relevance(requests)
    if tuned and trees:
        about["tuned"] = {"policy": tuned.name, "trials": analysis.tune(requests, tuned, settings.bandits)}
    whole = curves.write(grid, out, about)
    drawn = ""
    try:
        for metric in curves.CURVES:
            title = f"{len(grid.requests)} requests, arms: {Path(arms).name}"
            drawn += f", {curves.plot(grid, out, metric, title).name}"
    except MissingDependency as error:
        echo(str(error), err=True)
    spent = (
        f"{len(grid.requests)} requests in {built - began:.1f} s, {len(chosen)} policies x {settings.bandits.runs} "
        f"runs in {done - built:.1f} s. {out}: {curves.TABLE}, {curves.WHOLE}{drawn}"
    )
    show(whole, as_json, [*_lines(grid, whole), *_analysed(about), *_replies(about), spent])


@app.command()
def report(
    corpus: CorpusOption,
    index: IndexOption = None,
    vectors: VectorsOption = None,
    out: OutOption = Path("reports"),
    arms: ArmsOption = "sub-questions",
    relevance: RelevanceOption = "qrels",
    policies: Annotated[
        str, typer.Option("--policies", help="Names separated by commas; `full` reads all documents.")
    ] = "full,random,random-rank-aware,epsilon-greedy,bernoulli-top-5,top-k-ucb-diversity",
    budget: Annotated[float, typer.Option("--budget", "-b", min=0, max=100, help="Percent of all documents.")] = 20,
    repeats: Annotated[int, typer.Option("--repeats", min=1, help="Runs of a policy, each with its own reports.")] = 1,
    source: QuestionSourceOption = None,
    kind: QuestionKindOption = None,
    limit: QuestionLimitOption = None,
    profile: NamedProfileOption = "embedded",
    set_: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let a language model write a cited report from the documents that each policy picked, and judge it.

    Writes reports.jsonl and reports.json: citation support, nugget coverage, sentence support. Needs
    bandits.language_model.

    Example: `quit bandits report --corpus C --budget 20 -p server --set bandits.language_model=judge`
    """
    from quit.models.factory import Models
    from quit.systems.bandits import run as bandits
    from quit.systems.bandits.policies import policies as named
    from quit.systems.opening import language_model

    settings = load_settings(profile, set_)
    models = Models(settings)
    names = split_names(policies)
    known = {policy.name: policy for policy in named(settings.bandits, [n for n in names if n != bandits.FULL])}
    order = list(known) if "all" in names else [name for name in names if name != bandits.FULL]
    chosen = [None] * (bandits.FULL in names) + [known[name] for name in order]
    generator = language_model(settings.bandits.language_model, models, settings, "bandits.language_model")
    diverse = any(policy is not None and policy.novelty is not None for policy in chosen)
    requests, questions, opened, about = _requests(
        corpus, index, vectors, arms, relevance, (source, kind, limit), settings, models, diverse
    )
    scored = bandits.reports(requests, questions, opened, chosen, budget / 100, settings, generator, repeats)
    about |= {"budget": budget / 100, "language_model": generator.identity}
    summary = bandits.write_reports(scored, out, about)
    measures = ("citation_support", "nugget_coverage", "sentence_support")
    table = [
        f"{row['policy']:24} {row['documents']:9.1f}"
        + "".join(f"{row[name]:9.3f} ± {row[f'{name}_run_sd']:.3f}  " for name in measures)
        for row in summary
    ]
    table += [
        f"{row['policy']}: {row['reports']} reports, {row['cut']} cut at reports.max_new_tokens, {row['empty']} empty, "
        f"{row['without_citation']} without a citation; {row['citations']} citations, {row['invented']} of documents "
        f"that do not exist; {row['verdicts']} verdicts, {row['unread']} could not be read and count as No"
        for row in summary
    ] + _replies(about)
    head = f"{'policy':24} documents  citation support   nugget coverage  sentence support (± over runs)"
    show({**about, "policies": summary}, as_json, [head, *table, f"{out}: reports.jsonl, reports.json"])


def _requests(
    corpus: Path,
    index: list[Path] | None,
    vectors: Path | None,
    arms: str,
    relevance: str,
    which: tuple[str | None, str | None, int | None],
    settings: Any,
    models: Any,
    diverse: bool,
) -> tuple[list[Any], list[Any], Any, dict[str, Any]]:
    from quit.systems.bandits import run as bandits
    from quit.systems.bandits.arms import requests
    from quit.systems.collection import chosen
    from quit.systems.opening import language_model, open_collection
    from quit.systems.relevance import JudgedRelevance

    opened = open_collection(corpus, index or (), models, settings, vectors=vectors)

    def generator() -> Any:
        return language_model(settings.bandits.language_model, models, settings, "bandits.language_model")

    questions = chosen(opened.corpus, *which)
    parts, replies = bandits.decomposed(arms, questions, opened.corpus, opened.first_stage, settings, generator)
    observed: Any = relevance
    if relevance == "judge":
        named = generator() if settings.bandits.language_model else None
        observed = bandits.judge_of_documents(settings, models.encoder, named)
    needed = opened.vectors if diverse or relevance == "judge" else None
    measured = requests(parts, opened.corpus, opened.first_stage, settings.bandits, vectors=needed, relevance=observed)
    about = {
        "corpus": opened.corpus.identity,
        "first_stage": opened.first_stage.identity,
        "arms_from": Path(arms).name,
        "observed": relevance if isinstance(observed, str) else observed.identity,
    }
    if replies:
        about["decomposition_replies"] = replies
    if isinstance(observed, JudgedRelevance):
        about["relevance_verdicts"] = {"verdicts": observed.judge.asked, "unread": observed.judge.unread}
    return measured, [part.question for part in parts], opened.corpus, about


def _analysed(about: dict[str, Any]) -> list[str]:
    """Return whether relevance falls with the rank, and the best trial of a tree."""
    fit = about["rank_relevance"]
    lines = []
    if fit["requests"]:
        lines.append(
            f"Relevance falls with the rank in {fit['negative']} of {fit['requests']} requests: mean slope "
            f"{fit['slope']:.4f}, mean reciprocal rank {fit['mrr']:.3f}"
        )
    if tuned := about.get("tuned"):
        best = tuned["trials"][0]
        lines.append(
            f"Best of {len(tuned['trials'])} trees for {tuned['policy']}: n {best['expand_after']}, tau "
            f"{best['expand_above']:g}, lambda {best['inheritance']:g}, precision {best['precision']:.3f}"
        )
    return lines


def _replies(about: dict[str, Any]) -> list[str]:
    """Return what a language model's replies came to, where one wrote the arms or judged documents."""
    lines = []
    if counts := about.get("decomposition_replies"):
        lines.append(
            f"Decompositions: {counts['replies']} replies, {counts['unread']} without a list, {counts['cut']} cut at "
            f"the limit of tokens; {counts['without_sub_queries']} of {counts['decompositions']} decompositions are "
            "the request itself."
        )
    if counts := about.get("relevance_verdicts"):
        lines.append(
            f"Relevance: {counts['verdicts']} verdicts, {counts['unread']} could not be read and count as not relevant."
        )
    return lines


def _shares(text: str) -> list[float]:
    """Return ``10..100`` (in tens) or ``5,10,20`` as shares."""
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
    return [percent / 100 for percent in percents]


def _lines(grid: Any, whole: dict[str, Any]) -> list[str]:
    """Return precision by policy and budget, and what trees gain."""
    shown = [share for share in grid.settings.budgets if round(share * 100) in (5, 10, 20, 30, 50, 100)] or list(
        grid.settings.budgets
    )
    lines = ["Precision", f"{'budget':24}" + "".join(f"{share:>8.0%}" for share in shown)]
    for policy in grid.policies:
        values = "".join(f"{grid.value(policy.name, share).mean():8.3f}" for share in shown)
        lines.append(f"{policy.name:24}{values}")
    least = min(grid.settings.budgets)
    trees = [row for row in whole["trees"] if row["budget"] == least]
    if trees:
        lines += [
            "",
            f"Arms opened step by step against all at once, budget {least:.0%}",
            f"{'':43}    flat    tree    gain",
        ]
        for row in trees:
            gain = "" if row["gain"] is None else f"{row['gain']:8.1%}"
            lines.append(f"{row['policy']:24}{row['metric']:19}{row['flat']:8.3f}{row['tree']:8.3f}{gain}")
    if grid.left_out or grid.without_relevant:
        lines.append(
            f"Left out: {grid.left_out} requests below bandits.least_relevant. {grid.without_relevant} of those "
            "measured retrieve nothing relevant and score 0."
        )
    return lines

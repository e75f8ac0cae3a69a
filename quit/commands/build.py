"""``quit build``, ``plan`` and ``check``: from sources to labels, and a look before."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from quit.commands import options
from quit.commands.options import complete_sources, print_json, show
from quit.text.words import counted

SourceOption = Annotated[
    list[str] | None,
    typer.Option(
        "-s",
        help="KIND:PATH; repeat for several; those of the workspace's last build if not given. `starter` is the "
        "bundled collection.",
        autocompletion=complete_sources,
    ),
]

FirstQuestionsOption = Annotated[
    int | None,
    typer.Option(
        min=0,
        help="Only the first so many questions of all sources together, before the filter (collect.questions); 0: all, "
        "whatever the profile says.",
    ),
]


def build(
    workspace: options.Workspace = Path("workspace"),
    source: SourceOption = None,
    profile: options.Profile = None,
    set_: options.Set = None,
    shards: Annotated[int | None, typer.Option(min=1)] = None,
    runner: str | None = None,
    questions: FirstQuestionsOption = None,
    add: bool = False,
    replace: bool = False,
    max_cost: Annotated[float | None, typer.Option(min=0)] = None,
    fresh_replies: bool = False,
    corpus: Path | None = None,
    questions_from: Path | None = None,
    top: Annotated[int | None, typer.Option(min=1, max=1000)] = None,
    qrels: Path | None = None,
    quiet: options.Quiet = False,
) -> None:
    """Run the pipeline: from source files to labelled passages.

    What is up to date is not run again; a killed run resumes where it stopped. The workspace remembers sources,
    profile and settings (--questions, --runner and --shards too); the next build uses them again. --source replaces all
    remembered sources, and other sources forget --questions; --set replaces the remembered settings, except those of
    reviews and of other options. The build says how many questions leave and come; where reviewed ones would leave,
    nothing is built without --replace.

    Example: `quit build --source triviahg:Copilot.json --source wikihint:test.json`

    Args:
        shards: Parts per table; changes nothing in the result.
        runner: Where: threads, ray (processes), ray://HOST:10001; same result.
        add: Keep the sources of the last build and add --source.
        replace: Let questions leave that people reviewed, or that a release or replies of language models rest on.
        max_cost: Stop before servers' replies have cost more in all builds of this workspace (run.max_cost).
        fresh_replies: Delete all kept replies of this build's language models, also those of other workspaces, and ask
            again. To resume such a build, leave it out.
        corpus: With --source run:FILE: the documents that the run ranks, as JSON Lines or Parquet of {id, text, title}.
        questions_from: With run:FILE: JSON Lines of {id, question, answers}; their first documents are their passages.
        top: With run:FILE: so many documents per question; 20 if not given.
        qrels: With run:FILE: TREC qrels, kept beside the labels as the source's relevance and compared.
    """
    from quit.commands.console import print_summary
    from quit.engine.workspace import Workspace
    from quit.flows.calling import run_job
    from quit.library import jobs
    from quit.library.building import as_built, source_names
    from quit.library.progress import BuildConsole

    changes = {"shards": shards, "runner": runner, "questions": questions, "max_cost": max_cost}
    opened = Workspace(workspace)
    request = partial(as_built, opened, profile, set_, changes)
    sources = source_names(opened, source or (), request, corpus, questions_from, top, qrels)
    _, profile, texts = request(sources, add=add)
    arguments: dict[str, Any] = {"add": add, "replace": replace, "fresh_replies": fresh_replies}
    with BuildConsole(quiet):
        run_job(jobs.build, workspace=opened, sources=sources, profile=profile, settings=texts, **arguments)
    if not quiet:
        print_summary(opened)


def plan(
    workspace: options.Workspace = Path("workspace"),
    source: SourceOption = None,
    profile: options.Profile = None,
    set_: options.Set = None,
    throughput: Annotated[float | None, typer.Option(min=0.001)] = None,
    questions: FirstQuestionsOption = None,
    as_json: options.Json = False,
) -> None:
    """Say what a build will ask of language models before anything is spent: requests, tokens, hours, money.

    Example: `quit plan --profile server --throughput 200`

    Args:
        throughput: Replies per second.
    """
    from dataclasses import asdict

    from quit.commands.console import print_plan
    from quit.library.building import plan as plan_build

    costs = plan_build(workspace, source, profile, set_, questions=questions, throughput=throughput)
    if as_json:
        print_json(asdict(costs))
    else:
        print_plan(costs)


def check(
    source: Annotated[list[str], typer.Argument(autocompletion=complete_sources)],
    profile: options.NamedProfile = "embedded",
    set_: options.Set = None,
    limit: Annotated[int, typer.Option(min=0)] = 50,
    no_models: bool = False,
    as_json: options.Json = False,
) -> None:
    """Read sources and look for leaks as a build would; say what would be left out and why, and what looks odd. Writes
    nothing.

    Exits with 1 when something would be left out. Duplicates between files are found when all are named together.

    Example: `quit check mine.jsonl triviahg:Copilot.json`

    Args:
        source: KIND:PATH, a path that ends in .jsonl, .parquet, .csv or .tsv, or `starter`.
        limit: Faults and notes to print; 0 for all.
        no_models: Look for hints that give the answer away by rules alone: quicker.
    """
    from quit.library.building import check as check_sources

    findings = check_sources(source, profile, set_, models=not no_models)
    show(findings, as_json, _lines(findings, limit))
    if findings["faults"]:
        raise typer.Exit(1)


def _lines(findings: Mapping[str, Any], limit: int) -> list[str]:
    from quit.status.losses import ways_out
    from quit.status.notes import about_small_pool

    lines = []
    for name, mark in (("faults", "left out"), ("notes", "note")):
        for row in findings[name][: limit or None]:
            why = f"{mark}: {row['reason']}" if row.get("reason") else mark
            lines.append(f"{row['file']}, {row['detail']}  ({why})")
        if limit and len(findings[name]) > limit:
            lines.append(f"... {len(findings[name]) - limit:,} more (--limit 0 shows all)")
    if advice := ways_out(findings["faults"]):
        lines.append(advice)
    if findings["skipped"]:
        lines.append(f"Skipped: {findings['skipped']}.")
    if note := about_small_pool(findings["answers"]):
        lines.append(f"Note: {note}")
    faults = len(findings["faults"])
    counts = (
        f"{counted(findings['records'], 'record')}: {counted(findings['questions'], 'usable question')} with "
        f"{counted(findings['hints'], 'hint')}"
    )
    return [*lines, f"{counts}; {counted(faults, 'fault') if faults else 'no faults'}"]

"""The command line: parses, calls a flow or a function, prints. Heavy imports happen inside commands."""

from __future__ import annotations

import os
import sys
import traceback
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from quit.commands import (
    bandits,
    benchmark,
    check,
    complexity,
    corpora,
    evaluate,
    export,
    query,
    release,
    report,
    review,
    serve,
    status,
    sunar,
)
from quit.commands import workspace as workspace_commands
from quit.commands.models import cache as cache_app
from quit.commands.models import models as models_app
from quit.commands.options import (
    JsonOption,
    ProfileOption,
    QuietOption,
    SetOption,
    WorkspaceOption,
    complete_sources,
    open_to_read,
    open_workspace,
    place,
    print_json,
)
from quit.commands.overrides import override
from quit.common.logs import without_secrets_in_logs
from quit.common.stopping import exit_code, on_stop, taking_interrupts
from quit.common.telemetry import without_telemetry
from quit.common.terminal import echo
from quit.errors import QuitError, SettingsError, fault_of_the_machine
from quit.text.secrets import without_secrets
from quit.version import __version__

app = typer.Typer(
    name="quit",
    help="Build inferential question answering datasets: from hints to labelled passages to an exported release.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_LASTING = (("serve",), ("browse",), ("review", "serve"), ("models", "serve"))
"""Commands that Ctrl-C ends as a matter of course; they see to it themselves."""

MAKE, VERIFY, PUBLISH = "Make a dataset", "Verify it", "Publish it"
SYSTEMS, OPERATE = "Run and measure QA systems", "Set up and operate"
"""Who uses a command: the headings of ``quit --help``."""

STARTER = Path(__file__).parent / "starter" / "questions.jsonl"


SourceOption = Annotated[
    list[str] | None,
    typer.Option(
        "--source",
        "-s",
        help="KIND:PATH; repeat for several; those of the workspace's last build if not given. `starter` is the "
        "bundled collection.",
        autocompletion=complete_sources,
    ),
]

FirstQuestionsOption = Annotated[
    int | None,
    typer.Option(
        "--questions",
        min=0,
        help="Only the first so many questions of all sources together, before the filter (collect.questions); 0: all "
        "again.",
    ),
]


def _version(wanted: bool) -> None:
    if wanted:
        echo(f"quit {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass  # main() reads --debug; it stands here for --help


@app.command(rich_help_panel=MAKE)
def build(
    workspace: WorkspaceOption = Path("workspace"),
    source: SourceOption = None,
    profile: ProfileOption = None,
    set_: SetOption = None,
    shards: Annotated[
        int | None, typer.Option("--shards", min=1, help="Parts per table; changes nothing in the result.")
    ] = None,
    runner: Annotated[
        str | None,
        typer.Option("--runner", help="Where: threads, processes, ray, ray://HOST:10001; same result."),
    ] = None,
    questions: FirstQuestionsOption = None,
    add: Annotated[bool, typer.Option("--add", help="Keep the sources of the last build and add --source.")] = False,
    replace: Annotated[bool, typer.Option("--replace", help="Let questions leave that people reviewed.")] = False,
    fresh_replies: Annotated[
        bool,
        typer.Option(
            "--fresh-replies",
            help="Delete all kept replies of this build's language models, also those of other workspaces, and ask "
            "again. To resume such a build, leave it out.",
        ),
    ] = False,
    quiet: QuietOption = False,
) -> None:
    """Run the pipeline: from source files to labelled passages.

    What is up to date is not run again; a killed run resumes where it stopped. The workspace remembers sources,
    profile and settings (--questions, --runner and --shards too); the next build uses them again. --source replaces all
    remembered sources, --set all remembered settings, except those of reviews. The build says how many questions leave
    and come; where reviewed ones would leave, nothing is built without --replace.

    Example: `quit build -w W --source triviahg:Copilot.json --source wikihint:test.json`
    """
    from flows.calling import call_flow
    from quit.commands.console import print_summary
    from quit.commands.progress import BuildConsole, Notes
    from quit.common.progress import listening
    from quit.engine.planning import held_build

    refs, profile, overrides = _asked_build(workspace, source, profile, set_)
    sources = [str(ref) for ref in refs]
    for key, value in (("run.shards", shards), ("run.runner", runner), ("collect.questions", questions)):
        overrides = _with(overrides, key, value)
    notes = Notes(quiet)
    with ExitStack() as stack:
        stack.enter_context(listening(notes))
        pipeline = stack.enter_context(held_build(workspace, sources, profile, overrides, add=add, replace=replace))
        if fresh_replies:
            from quit.operations.replies import ask_again

            ask_again(pipeline)
        if pipeline.up_to_date:
            pipeline.begin()  # the sources may lie elsewhere now
            notes.noted(f"{workspace} is up to date: nothing to run.", loud=False)
        else:
            console = BuildConsole(pipeline, quiet)
            on_stop(console.stop)
            with console:
                call_flow("build.build_held", pipeline)
    if not quiet:
        print_summary(open_workspace(workspace))


@app.command(rich_help_panel=MAKE)
def show(
    question_id: Annotated[str, typer.Argument(help="Id of a question; the source's id works if it is unique.")],
    workspace: WorkspaceOption = Path("workspace"),
    as_json: JsonOption = False,
    passages: Annotated[int, typer.Option("--passages", help="Passages to print; 0 for all.")] = 12,
) -> None:
    """Show everything about one question: hints, leaks, type, difficulty, probe, split, passages, answers, verdicts,
    labels.

    Example: `quit show -w W jsonl-geo-003 --passages 20`
    """
    from quit.commands.console import print_question
    from quit.status.story import story

    life = story(open_to_read(workspace), question_id)
    if as_json:
        print_json(life)
    else:
        print_question(life, passages)


app.command(rich_help_panel=PUBLISH)(export.export)


@app.command(rich_help_panel=OPERATE)
def settings(
    profile: Annotated[
        str, typer.Option("--profile", "-p", help="Profile: a name, or the path of a TOML file.")
    ] = "embedded",
    set_: SetOption = None,
    toml: Annotated[bool, typer.Option("--toml", help="Print the profile itself, to copy and change.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Print the effective settings, each with where it comes from.

    Examples: `quit settings --profile paper --set labels.max_new_tokens=16`, `quit settings --profile embedded --toml >
    mine.toml`
    """
    from quit.commands.console import print_settings
    from quit.settings import load, profile_file

    if toml:
        if set_ or as_json:
            raise SettingsError("--toml prints the profile as it is: leave out --set and --json.")
        typer.echo(profile_file(profile).read_bytes(), nl=False)
        return
    loaded = load(profile, set_ or ())
    if as_json:
        print_json([{"key": key, "value": value, "origin": origin} for key, value, origin in loaded.rows()])
    else:
        print_settings(loaded)


@app.command(rich_help_panel=OPERATE)
def doctor(
    workspace: Annotated[
        Path | None, typer.Option("--workspace", "-w", **place, help="Also check this workspace.")
    ] = None,
    profile: Annotated[str, typer.Option("--profile", "-p", help="Profile to check.")] = "embedded",
    as_json: JsonOption = False,
) -> None:
    """Check the installation, models, servers and settings, and say what to do about each fault.

    Example: `quit doctor -w W`
    """
    from quit.commands.console import print_checks
    from quit.operations.doctor import examine

    checks = examine(profile, workspace)
    if as_json:
        print_json([{"what": check.what, "ok": check.ok, "found": check.found, "do": check.remedy} for check in checks])
    else:
        print_checks(checks)
    if not all(check.ok for check in checks):
        raise typer.Exit(1)


@app.command(rich_help_panel=MAKE)
def plan(
    workspace: WorkspaceOption = Path("workspace"),
    source: SourceOption = None,
    profile: ProfileOption = None,
    set_: SetOption = None,
    throughput: Annotated[float | None, typer.Option("--throughput", min=0.001, help="Replies a second.")] = None,
    block: Annotated[int, typer.Option("--block", min=1, help="Tokens a block of the server's prefix cache.")] = 16,
    sample: Annotated[int, typer.Option("--sample", min=1, help="Questions whose prompts are counted.")] = 200,
    questions: FirstQuestionsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say what a build will ask of language models before anything is spent: requests, tokens, hours, money.

    Example: `quit plan -w W --profile server --throughput 200`
    """
    from dataclasses import asdict

    from quit.commands.console import print_plan
    from quit.commands.progress import working
    from quit.engine.pipeline import Pipeline
    from quit.engine.planning import checked_build
    from quit.engine.workspace import Workspace
    from quit.operations.plan import plan as make_plan

    sources, profile, overrides = _asked_build(workspace, source, profile, set_)
    overrides = _with(overrides, "collect.questions", questions)
    settings, refs = checked_build([str(ref) for ref in sources], profile, overrides)
    pipeline = Pipeline(Workspace(workspace), settings, refs)
    with working("plan"):
        costs = make_plan(pipeline, sample=sample, block=block, throughput=throughput)
    if as_json:
        print_json(asdict(costs))
    else:
        print_plan(costs)


for command, panel in (
    (check.check, MAKE),
    (status.status, MAKE),
    (report.report, MAKE),
    (report.browse, MAKE),
    (query.query, MAKE),
    (serve.serve, OPERATE),
):
    app.command(rich_help_panel=panel)(command)
for group, name, panel in (
    (review.app, "review", VERIFY),
    (override, "override", VERIFY),
    (release.app, "release", PUBLISH),
    (benchmark.app, "benchmark", SYSTEMS),
    (evaluate.app, "evaluate", SYSTEMS),
    (corpora.corpus, "corpus", SYSTEMS),
    (corpora.index, "index", SYSTEMS),
    (corpora.graph, "graph", SYSTEMS),
    (sunar.app, "sunar", SYSTEMS),
    (bandits.app, "bandits", SYSTEMS),
    (complexity.app, "complexity", SYSTEMS),
    (workspace_commands.app, "workspace", OPERATE),
    (models_app, "models", OPERATE),
    (cache_app, "cache", OPERATE),
):
    app.add_typer(group, name=name, rich_help_panel=panel)


def _asked_build(
    path: Path, source: list[str] | None, profile: str | None, set_: list[str] | None
) -> tuple[list[Any], str, list[str]]:
    """Return sources, profile and overrides as given, else those of the workspace's last build."""
    from quit.engine.workspace import Workspace
    from quit.sources import parse_source

    workspace, known = Workspace(path), {}
    if workspace.exists:
        workspace.check_format()
        known = workspace.build or {}
    texts = (f"jsonl:{STARTER}" if text == "starter" else text for text in source or known.get("sources", []))
    overrides = set_ if set_ is not None else known.get("overrides", [])
    return [parse_source(text) for text in texts], profile or known.get("profile", "embedded"), list(overrides)


def _with(overrides: list[str], key: str, value: object) -> list[str]:
    """Return overrides with a setting in place of the one they had; as they were where ``value`` is None, without the
    setting where it is 0."""
    if value is None:
        return overrides
    others = [text for text in overrides if not text.startswith(f"{key}=")]
    return [*others, f"{key}={value}"] if value else others


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; errors made for people become one line on stderr and an exit code."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by who started this
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
    without_telemetry()
    without_secrets_in_logs()
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in arguments
    words = tuple(word for word in arguments if not word.startswith("-"))
    lasting = any(words[: len(name)] == name for name in _LASTING) or "--cron" in arguments
    try:
        with nullcontext() if lasting else taking_interrupts(quiet_after=not debug):
            try:
                app(arguments, standalone_mode=True)
            finally:
                sys.stdout.flush()
    except KeyboardInterrupt:
        raise SystemExit(exit_code()) from None
    except Exception as error:
        if isinstance(error, OSError):
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115 (what it still holds cannot be written)
        if isinstance(error, BrokenPipeError):  # who reads the output has read enough
            raise SystemExit(1) from None
        fault = error if isinstance(error, QuitError) else fault_of_the_machine(error)
        if fault and not debug:
            echo(f"quit: {fault}", err=True)
            raise SystemExit(fault.exit_code) from None
        echo(without_secrets(traceback.format_exc()), err=True, nl=False)
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()

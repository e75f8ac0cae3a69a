"""``quit review``: people verify answers in Label Studio, and their verdicts update the labels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quit.commands import options
from quit.commands.declaring import Group
from quit.commands.options import open_workspace, show, working
from quit.common.terminal import echo
from quit.errors import QuitError
from quit.text.words import counted, shell_word

if TYPE_CHECKING:
    from quit.annotation.client import Server
    from quit.annotation.reports import PullReport, PushReport
    from quit.engine.workspace import Workspace
    from quit.library.reviewing import SyncReports
    from quit.settings.review import Review

PULL_SECONDS = 300
"""How often `quit review serve` pulls."""

app = Group("People verify the answers of dev and test in Label Studio; their verdicts update the labels.")

UrlOption = Annotated[
    str | None,
    typer.Option(
        help="Address of a Label Studio server; the workspace's local one if not given. Its token: "
        "LABEL_STUDIO_API_KEY."
    ),
]
SetOption = Annotated[list[str] | None, typer.Option(help="Override a review setting, from now on: review.overlap=2.")]
ProjectOption = Annotated[
    int | None, typer.Option(help="Number of the project, where several belong to this workspace.")
]


@app.command()
def serve(workspace: options.Workspace = Path("workspace"), port: int | None = None) -> None:
    """Start Label Studio on this machine, with its database in the workspace; Ctrl-C stops it.

    The first start installs it into its own environment (about two minutes). Leave it running and push from
    another terminal. It pulls what people did every five minutes.

    Example: `quit review serve`

    Args:
        port: Port to listen on; 0 takes a free one.
    """
    from quit.annotation.client import connect
    from quit.annotation.server import LocalServer
    from quit.common.progress import note
    from quit.review.store import ReviewStore

    opened, review = _open(workspace)
    server = LocalServer(opened.path, review.port if port is None else port)
    try:
        with working("Label Studio"):
            account = server.start(note)
            studio = connect(opened.path, review)
        echo(f"Label Studio {account.version} is ready: {account.url}")
        echo(f"  your account     {account.email}, password {account.password}")
        last_project: int | None = None
        problems: list[str] = []
        at_the_start = running = True
        seconds = 0
        while running:
            facts = ReviewStore(opened).project
            project = facts["id"] if facts.get("tasks") and facts["url"] == account.url else None
            if at_the_start or project not in (None, last_project):  # and when a push has made it
                page = f"{account.url}/projects/{project}/data"
                links = f"  for annotators   {studio.invitation(project)}\n  project          {page}" if project else ""
                echo(links or f"  next             quit review push -w {shell_word(workspace)}")
                last_project, at_the_start = project, False
            running = server.runs_on(1.0)
            seconds += 1
            if project and seconds % PULL_SECONDS == 0:
                problems = _pull(opened, studio, problems)
    finally:
        server.stop()


def _pull(workspace: Workspace, studio: Server, last_problems: Sequence[str] = ()) -> list[str]:
    """Pull beside a running server and return the problems, of which those are said that the last pull had not; what is
    in the way is tried again later."""
    from quit.annotation.sync import pull
    from quit.engine.request import settings_of
    from quit.review.store import ReviewStore

    try:
        report = pull(ReviewStore(workspace), studio, settings_of(workspace))
    except QuitError as error:
        problems = [f"nothing pulled. {error}"]
    else:
        problems = report.problems
        if report.versions or report.withdrawn:
            echo(f"  pulled           {counted(report.versions, 'annotation')}, {report.withdrawn} withdrawn")
    _say(problem for problem in problems if problem not in last_problems)
    return problems


@app.command()
def push(
    workspace: options.Workspace = Path("workspace"),
    url: UrlOption = None,
    project: ProjectOption = None,
    new_project: bool = False,
    repair_config: bool = False,
    set_: SetOption = None,
    as_json: options.Json = False,
) -> None:
    """Make or update the review project: one task per question of dev and test, the most informative first.

    Pushing again changes only tasks whose content changed.

    Example: `quit review push --set review.overlap=2`

    Args:
        new_project: Make a new project and leave the last one.
        repair_config: Put back a labelling page that someone edited.
    """
    more = {"new_project": new_project, "repair": repair_config, "settings": set_}
    report = _sync("push", workspace, url=url, project=project, **more)["push"]
    verb = "Made" if report.created else "Updated"
    lines = [
        f"{verb} project {report.project}: {report.url}/projects/{report.project}/data",
        f"  {counted(report.new, 'new task')}, {report.changed} changed, {report.unchanged} unchanged"
        + (f"; {report.blind} are blind" if report.blind else ""),
        *([f"  for annotators: {report.invitation}"] if report.invitation else []),
    ]
    _print_report(report, as_json, lines)


@app.command()
def pull(
    workspace: options.Workspace = Path("workspace"),
    url: UrlOption = None,
    project: ProjectOption = None,
    full: bool = False,
    accept_withdrawals: bool = False,
    as_json: options.Json = False,
) -> None:
    """Import what people did into the table `reviews`, and say whom to ask about unclear pages.

    An interrupted pull counts nothing twice.

    Example: `quit review pull`

    Args:
        full: Read every task, not only those changed since the last pull.
        accept_withdrawals: Withdraw reviews even if many annotations were deleted at once.
    """
    more = {"full": full, "accept_withdrawals": accept_withdrawals}
    report = _sync("pull", workspace, url=url, project=project, **more)["pull"]
    line = (
        f"{counted(report.versions, 'new or changed annotation')} ({report.skipped} skipped), "
        f"{report.withdrawn} withdrawn: {counted(report.rows, 'row')}, {report.verdicts} of them verdicts on "
        f"answers. {report.done} of {counted(report.tasks, 'task')} done."
    )
    _print_report(report, as_json, [line])


@app.command()
def apply(
    workspace: options.Workspace = Path("workspace"),
    withdraw: bool = False,
    set_: SetOption = None,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Update labels and valid answers with the reviews pulled so far. No reader or judge is asked; only with
    `labels.partial`, skipped labelers are asked about passages whose answer people reject.

    Applying twice changes nothing; every change is a row of the table `changes`.

    Example: `quit review apply`

    Args:
        withdraw: Undo: labels as before any review.
    """
    from quit.flows.calling import run_job
    from quit.library import reviewing

    with working("update", quiet):
        reports = run_job(reviewing.label_update, workspace=str(workspace), withdraw=withdraw, settings=set_)
    report = reports["update"]
    removal_reasons = ", ".join(f"{count} {reason}" for reason, count in report.questions_removed.items()) or "none"
    names = ("labels from 1 to 2", "labels from 2 to 1", "valid answers added", "valid answers removed")
    what = (*names, "questions removed")
    changes = [f"{name} {count:+,}" for name, count in zip(what, report.now.values(), strict=True) if count]
    done = f"Applied: {', '.join(changes) or 'the new reviews change nothing'}."
    lines = [
        done if report.ran else "Nothing new since the last apply: the labels already use these reviews.",
        "Since the build:",
        f"  {counted(report.decided, 'verdict')} settled, {report.open} open (quit review status --disagreements)",
        f"  labels: {report.labels_up} from 1 to 2, {report.labels_down} from 2 to 1",
        f"  valid answers: {report.answers_added} added, {report.answers_removed} removed",
        f"  questions removed: {removal_reasons}",
    ]
    if withdraw:
        lines = ["The labels are those from before any review."]
    elif not report.applied:
        lines = ["There are no reviews yet: quit review pull"]
    show(asdict(report), as_json, [] if quiet else lines)


@app.command()
def status(
    workspace: options.Workspace = Path("workspace"), disagreements: bool = False, as_json: options.Json = False
) -> None:
    """Show progress: done, open, blind tasks and others, agreement (alpha of all, kappa of every two annotators),
    control questions, what is applied. Asks no server.

    Examples: `quit review status`, `quit review status --disagreements`

    Args:
        disagreements: List every answer and flag on which people disagree.
    """
    from quit.review.report import pieces
    from quit.review.status import review_status

    progress = review_status(*_open(workspace))
    rows = progress["disagreements"]
    if disagreements:
        lines = []
        for row in rows:
            what = row["answer"] if row["kind"] == "answer" else f"flag {row['key']}"
            lines.append(f"{row['question_id']}: {what!r}: {row['yes']} yes, {row['no']} no ({row['basis']})")
        show(rows, as_json, [*lines, f"{len(rows)} open."])
    else:
        show(progress, as_json, pieces(progress))


@app.command()
def run(workspace: options.Workspace = Path("workspace"), url: UrlOption = None) -> None:
    """Push, pull and apply.

    Example: `quit review run`
    """
    from quit.flows.calling import run_job
    from quit.library import reviewing
    from quit.review.report import pieces
    from quit.review.status import review_status

    opened, review = _open(workspace)
    with working("review"):
        reports = run_job(reviewing.review_sync, workspace=opened, url=url)
    _say(reports["push"].problems)
    try:
        with working("review"):
            run_job(reviewing.label_update, workspace=opened)
    finally:  # what the pull met is said even if its reviews cannot be applied
        show(None, False, pieces(review_status(opened, review)))


def _open(place: Path) -> tuple[Workspace, Review]:
    """Return a workspace, and the settings of its review."""
    from quit.engine.request import settings_of

    workspace = open_workspace(place)
    return workspace, settings_of(workspace).review


def _sync(step: str, workspace: Path, **arguments: Any) -> SyncReports:
    """Push or pull, and return what was done, by step."""
    from quit.flows.calling import run_job
    from quit.library import reviewing

    with working(step):
        return run_job(reviewing.review_sync, workspace=str(workspace), steps=[step], **arguments)


def _print_report(report: PushReport | PullReport, as_json: bool, lines: list[str]) -> None:
    show(asdict(report), as_json, lines)
    _say([] if as_json else report.problems)


def _say(problems: Iterable[str]) -> None:
    for problem in problems:
        echo(f"Attention: {problem}", err=True)

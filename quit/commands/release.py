"""``quit release``: freeze a version of the dataset, check it, verify it, compare two, ask another judge."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quit.commands import options
from quit.commands.declaring import Group
from quit.commands.options import open_workspace, show, working
from quit.errors import GateError, SettingsError, check_known
from quit.render.table import Table
from quit.text.words import counted, shell_word

if TYPE_CHECKING:
    from quit.library.results import ReleaseFacts

app = Group("Freeze versions of the dataset, check, verify and compare them.")

WaiveOption = Annotated[
    list[str] | None,
    typer.Option(
        help="GATE=REASON: let a failed gate pass; the reason is published with the data. Repeat for several."
    ),
]
SetOption = Annotated[
    list[str] | None, typer.Option(help="Override a release setting for this command: release.human_coverage=0.9.")
]


@app.command()
def create(
    workspace: options.Workspace = Path("workspace"),
    name: Annotated[str, typer.Option("-n")] = ...,  # type: ignore[assignment]
    out: Annotated[Path | None, typer.Option("-o")] = None,
    waive: WaiveOption = None,
    set_: SetOption = None,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Freeze the current tables as a release, if every gate is passed or waived.

    The same workspace gives the same bytes and the same content id. A release is never changed: an existing name with
    other content is refused.

    Example: `quit release create --name v1`

    Args:
        name: Name of the version, such as v1.
        out: Folder of the release; WORKSPACE/releases/NAME if not given.
    """
    from quit.flows.calling import run_job
    from quit.library import jobs
    from quit.release.show import frozen_line

    arguments = {"waive": waive, "settings": set_, "folder": str(out) if out else None}
    with working("release", quiet):
        facts: ReleaseFacts = run_job(jobs.release, workspace=str(workspace), name=name, **arguments)
    line = frozen_line(facts.path, facts.name, facts.content_id, bool(facts.new))
    show(asdict(facts), as_json, [] if quiet else [f"{line} {facts.note}".rstrip()])


@app.command("import")
def import_(
    folder: Path,
    out: Annotated[Path, typer.Option("-o")],
    name: Annotated[str | None, typer.Option("-n")] = None,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Make a release of a dataset published as the paper's release JSON, so that every command for releases runs on it.

    Labels stay as published and are compared with our rule. What the files do not hold is null in the tables and named
    in the release; what gates find is reported and refuses nothing.

    Example: `quit release import QUIT --out releases/quit`

    Args:
        folder: Folder with train.json, dev.json and test.json (.gz, .zst).
        out: Folder of the release.
        name: Name of the version; the folder's name if not given.
    """
    from quit.models.factory import Models
    from quit.release.import_release import import_release
    from quit.release.show import frozen_line, imported_lines
    from quit.settings import Settings

    with working("import", quiet):
        created = import_release(folder, out, name, Models(Settings()).encoder)
    release = created.release
    line = frozen_line(out, release.name, release.content_id, created.new)
    facts = {"path": str(out), "content_id": release.content_id, "new": created.new, "imported": release.imported}
    show(facts, as_json, [] if quiet else [line, *imported_lines(release)])


@app.command()
def verify(path: options.Release, as_json: options.Json = False) -> None:
    """Recompute every checksum and the content id; name each file that is not what was frozen, and each row that is not
    what its table's contract says.

    Example: `quit release verify workspace/releases/v1`
    """
    from quit.release.verify import verify_tables

    with working("verification"):
        release = verify_tables(path)
    facts = {"path": str(path), "name": release.name, "content_id": release.content_id, "verified": True}
    tables = len(release.content["tables"])
    line = f"{path}: release {release.name} is what was frozen ({tables} tables, content id {release.content_id})"
    show(facts, as_json, [line])


@app.command("list")
def list_(workspace: options.Workspace = Path("workspace"), as_json: options.Json = False) -> None:
    """List the releases in a workspace.

    Example: `quit release list`
    """
    from quit.dataset.release import list_rows, releases_of

    rows = list_rows(releases_of(open_workspace(workspace)))
    lines = []
    for row in rows:
        counts = ", ".join(f"{count} {split}" for split, count in row["questions"].items() if split != "all")
        waived = f"; waived: {', '.join(row['waived'])}" if row["waived"] else ""
        questions = counted(row["questions"]["all"], "question")
        lines.append(f"{row['name']}  {row['content_id'][:12]}  {questions} ({counts}){waived}")
    show(rows, as_json, lines or [f"There is no release yet: quit release create -w {shell_word(workspace)} --name v1"])


@app.command("show")
def show_(path: options.Release, as_json: options.Json = False) -> None:
    """Show what a release says of itself: counts, statistics, sources, readers, reviews, gates.

    Example: `quit release show workspace/releases/v1`
    """
    from quit.dataset.release import open_release
    from quit.release.show import described

    release = open_release(path)
    show(release.facts, as_json, described(release))


@app.command()
def check(
    path: Annotated[Path | None, typer.Argument()] = None,
    workspace: options.Workspace = Path("workspace"),
    waive: WaiveOption = None,
    set_: SetOption = None,
    venue: Annotated[str, typer.Option("--for", metavar="VENUE")] = "",
    blind: bool = False,
    card: options.Card = None,
    as_json: options.Json = False,
) -> None:
    """Say which quality gates a workspace (or a release) passes; exits with 8 when one fails.

    With --for: also which required metadata an export would have, and which a person must write where; exits with 8
    when some is missing.

    Examples: `quit release check --waive unjudged-answer='two replies of the judge could not be read'`, `quit release
    check workspace/releases/v1 --for neurips --card card.toml`

    Args:
        path: Folder of a release; the workspace if not given.
        venue: Also what a venue requires: neurips (metadata), arr (checklist).
        blind: --for: of a submission that names no author.
    """
    from quit.export.venues import VENUES, venue_metadata
    from quit.release.check import check_release, check_workspace
    from quit.release.gates import parse_waivers
    from quit.release.show import gate_lines
    from quit.settings import load_card

    if (card or blind) and not venue:
        raise SettingsError("--card and --blind go with --for: name a venue, such as --for neurips.")
    if venue:
        check_known(venue, VENUES, "venue")
    waivers, other_card = parse_waivers(waive or ()), load_card(card) if card else None
    with working("check"):
        if path is not None:
            outcome = check_release(path, set_ or (), waivers)
        else:
            outcome = check_workspace(open_workspace(workspace), set_ or (), waivers)
    metadata = venue_metadata(venue, outcome.provenance, other_card or outcome.card, blind=blind) if venue else []
    gates = [result.to_dict() for result in outcome.results]
    pieces: list[Table | str] = ["\n".join(gate_lines(outcome.results))]
    if venue:
        rows = [(row["field"], "there" if row["there"] else "missing", row["source"]) for row in metadata]
        pieces.append(Table(f"Metadata that {venue} requires", ("field", "state", "source"), rows, (1, 2)))
    show({"gates": gates, "required": metadata} if venue else gates, as_json, pieces)
    if any(result.state == "failed" for result in outcome.results) or not all(row["there"] for row in metadata):
        raise typer.Exit(GateError.exit_code)


@app.command()
def diff(
    before: Path, after: Path, as_json: options.Json = False, limit: Annotated[int, typer.Option(min=0)] = 50
) -> None:
    """Say in Markdown which questions, labels and valid answers changed between two releases, and why.

    Example: `quit release diff workspace/releases/v1 workspace/releases/v2 > changes.md`

    Args:
        before: Folder of the earlier release.
        after: Folder of the later release.
        limit: Rows a list in Markdown; 0 for all.
    """
    from quit.release.diff import diff as compare
    from quit.release.show import changelog

    with working("comparison"):
        difference = compare(before, after)
    show(difference, as_json, [changelog(difference, limit)])


@app.command()
def rejudge(
    place: Path,
    judge: Annotated[str, typer.Option()],
    profile: options.Profile = None,
    set_: options.Set = None,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Have another judge judge the distinct answers, and count the labels that its verdicts would flip. None changes.

    Its verdicts lie beside the release, in RELEASE.judges/NAME, or in WORKSPACE/judges/NAME. Replies are cached as in
    builds: to resume a run that was stopped or waits for a batch (exit code 10), repeat the command.

    Example: `quit release rejudge workspace/releases/v1 --judge equivalence`

    Args:
        place: Folder of a release, or folder of a workspace.
        judge: Name of the judge (`judge.name` of the profile), or equivalence.
        profile: Profile with the judge; that of the workspace's last build if not given.
        set_: Override a setting: judge.model=NAME, run.max_cost=5.
    """
    from quit.release.rejudge import rejudge as judge_anew
    from quit.release.rejudge import settings_for

    with working("rejudge", quiet):
        facts = judge_anew(place, judge, settings_for(place, profile, set_ or ()))
    line = (
        f"{facts['path']}: {counted(facts['answers'], 'distinct answer')}, {facts['by_the_judge']:,} by {judge} "
        f"({facts['unread']:,} unread)."
    )
    lines = [line if facts["new"] else f"Nothing new. {line}"]
    if labels := facts["labels"]:
        lines.append(
            f"Of {counted(labels['passages'], 'passage')}, {labels['label_2']:,} with label 2, {labels['to_1']:,} would"
            f" change to 1 and {labels['to_2']:,} to 2; {counted(len(labels['lose_all']), 'question')} would lose all."
        )
    lines.append(f"Where judges differ: quit evaluate judges -w {shell_word(place)}")
    show(facts, as_json, [] if quiet else lines)

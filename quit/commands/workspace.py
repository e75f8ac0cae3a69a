"""``quit workspace``: backups, garbage, upgrades, support bundles."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from quit.commands.options import JsonOption, NamedProfileOption, WorkspaceOption, local_folder, place, print_json
from quit.operations.estimate import Estimate

app = typer.Typer(
    help="Look after a workspace: back it up, restore it, free space, upgrade it, ask for help.", no_args_is_help=True
)
WaitOption = Annotated[
    float, typer.Option("--wait", min=0, help="Seconds to wait for another run on the same workspace.")
]
_MIB = 1 << 20


@app.command("backup")
def backup(
    archive: Annotated[Path, typer.Argument(**local_folder, help="Tar file to write; it must not exist.")],
    workspace: WorkspaceOption = Path("workspace"),
    everything: Annotated[bool, typer.Option("--everything", help="Tables of older fingerprints too.")] = False,
    wait: WaitOption = 180.0,
    as_json: JsonOption = False,
) -> None:
    """Write a workspace to one tar file: current tables, reviews, overrides, releases, settings.

    Left out: sources, the generation cache (`quit cache export`), accounts and secrets of a local annotation server.

    Example: `quit workspace backup W-2026-11-21.tar -w W`
    """
    from quit.engine.workspace import Workspace
    from quit.operations.backup import backup as write

    report = write(Workspace.open(workspace), archive, everything=everything, wait=wait, progress=_progress("backup"))
    if as_json:
        print_json({"path": str(archive), "files": report.files, "bytes": report.bytes, "old_fingerprints": report.old})
        return
    typer.echo(f"{archive}: {report.files:,} files, {report.bytes / _MIB:,.1f} MiB")
    if report.old:
        typer.echo(f"{report.old} older fingerprints left out (--everything keeps them)")


@app.command("restore")
def restore(
    archive: Annotated[Path, typer.Argument(help="Tar file that `quit workspace backup` wrote.")],
    workspace: WorkspaceOption = Path("workspace"),
    as_json: JsonOption = False,
) -> None:
    """Make a workspace from a backup, in a new folder; every file is compared with its checksum first.

    Example: `quit workspace restore W-2026-11-21.tar -w W2`
    """
    from quit.operations.backup import restore as unpack

    report = unpack(archive, workspace, progress=_progress("restore"))
    if as_json:
        print_json({"path": str(workspace), "files": report.files, "missing_sources": list(report.missing_sources)})
        return
    typer.echo(f"{workspace}: {report.files:,} files, {report.bytes / _MIB:,.1f} MiB, every checksum right")
    for text in report.missing_sources:
        typer.echo(f"not here: {text}. To build again, put it there or name its place: quit build --source KIND:PATH")


@app.command("gc")
def gc(
    workspace: WorkspaceOption = Path("workspace"),
    remove: Annotated[bool, typer.Option("--remove", help="Remove them. Without it nothing is changed.")] = False,
    keep: Annotated[int, typer.Option("--keep", min=0, help="Leave so many of each stage, the newest.")] = 0,
    days: Annotated[float, typer.Option("--days", min=0, help="Leave what is younger than so many days.")] = 0.0,
    wait: WaitOption = 180.0,
    as_json: JsonOption = False,
) -> None:
    """List tables that other settings, sources or versions left behind, or remove them. A dry run unless --remove is
    given.

    Current tables, those of the last build, logs, reviews and releases are never touched.

    Example: `quit workspace gc -w W --keep 1`, then the same with `--remove`
    """
    from quit.engine.workspace import Workspace
    from quit.operations.garbage import collect, unused

    opened = Workspace.open(workspace)
    folders = unused(opened, keep=keep, days=days)
    freed = collect(opened, folders, wait) if remove else 0
    total = sum(folder.bytes for folder in folders)
    if as_json:
        rows = [
            {"run": folder.run, "fingerprint": folder.fingerprint, "bytes": folder.bytes, "complete": folder.complete}
            for folder in folders
        ]
        print_json({"removed": remove, "bytes": total, "runs": rows})
        return
    for folder in folders:
        day = time.strftime("%Y-%m-%d", time.localtime(folder.changed))
        state = "" if folder.complete else ", unfinished"
        typer.echo(
            f"{folder.run} {folder.fingerprint}: {folder.files:,} files, {folder.bytes / _MIB:,.1f} MiB, {day}{state}"
        )
    if not folders:
        typer.echo("Nothing is left over.")
    elif remove:
        typer.echo(f"{freed / _MIB:,.1f} MiB freed")
    else:
        typer.echo(f"{total / _MIB:,.1f} MiB could be freed: run the same command with --remove")


@app.command("migrate")
def migrate(
    workspace: WorkspaceOption = Path("workspace"),
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
    wait: WaitOption = 180.0,
    as_json: JsonOption = False,
) -> None:
    """Bring a workspace that an older program made up to date. Back it up first.

    Example: `quit workspace migrate -w W --dry-run`
    """
    from quit.engine.migrate import migrate as upgrade

    plan = upgrade(workspace, dry_run=dry_run, wait=wait)
    if as_json:
        print_json(
            {"found": plan.found, "wanted": plan.wanted, "steps": list(plan.steps), "older_parts": dict(plan.logs)}
        )
        return
    for step in plan.steps:
        typer.echo(f"{'to do' if dry_run else 'done'}: {step}")
    if not plan.steps:
        typer.echo(f"{workspace} has format {plan.found}, the newest. Nothing to do.")
    for name, count in plan.logs.items():
        typer.echo(f"{name}: {count} parts lack columns that came later; they are read as empty. Nothing to do.")


@app.command("support")
def support(
    archive: Annotated[Path, typer.Argument(**local_folder, help="ZIP file to write; it must not exist.")] = Path(
        "quit-support.zip"
    ),
    workspace: Annotated[
        Path | None, typer.Option("--workspace", "-w", **place, help="Also report on this workspace.")
    ] = None,
    profile: NamedProfileOption = "embedded",
) -> None:
    """Write a bundle for asking for help: versions, checks, settings, the state of the stages. No secrets, no texts of
    the dataset.

    Example: `quit workspace support -w W bundle.zip`
    """
    from quit.operations.support import bundle

    for name in bundle(archive, workspace, profile):
        typer.echo(f"  {name}")
    typer.echo(f"{archive}: read it before you send it")


def _progress(what: str) -> Callable[[int, int], None]:
    """Return what tells a terminal how far a copy is, once a second from the second second on; a pipe gets
    nothing."""
    state: dict[str, float] = {"told": time.monotonic() + 1}
    estimates: list[Estimate] = []

    def tell(done: int, total: int) -> None:
        if not estimates:
            estimates.append(Estimate(total // _MIB))
        if sys.stderr.isatty() and time.monotonic() - state["told"] >= 1:
            state["told"] = time.monotonic()
            typer.echo(f"{what}: {estimates[0].at(done // _MIB)} (MiB)", err=True)

    return tell

"""``quit workspace``: backups and garbage."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from quit.commands import options
from quit.commands.options import open_workspace, show, working
from quit.errors import shell_word

app = typer.Typer(help="Look after a workspace: back it up, restore it, free space.", no_args_is_help=True)
WaitOption = Annotated[
    float, typer.Option("--wait", min=0, help="Seconds to wait for another run on the same workspace.")
]
_MIB = 1 << 20


@app.command("backup")
def backup(
    archive: Annotated[Path, typer.Argument(help="Tar file to write; it must not exist.")],
    workspace: options.Workspace = Path("workspace"),
    everything: Annotated[bool, typer.Option("--everything", help="Tables of older fingerprints too.")] = False,
    wait: WaitOption = 180.0,
    as_json: options.Json = False,
) -> None:
    """Write a workspace to one tar file: current tables, reviews, overrides, releases, settings.

    Left out: sources, the generation cache (`quit cache export`), accounts and secrets of a local annotation server.

    Example: `quit workspace backup workspace-2026-11-21.tar`
    """
    from quit.operations.backup import backup as write

    with working("backup"):
        report = write(open_workspace(workspace), archive, everything=everything, wait=wait)
    facts = {"path": str(archive), "files": report.files, "bytes": report.bytes, "old_fingerprints": report.old}
    lines = [f"{archive}: {report.files:,} files, {report.bytes / _MIB:,.1f} MiB"]
    if report.old:
        lines.append(f"{report.old} older fingerprints left out (--everything keeps them)")
    show(facts, as_json, lines)


@app.command("restore")
def restore(
    archive: Annotated[Path, typer.Argument(help="Tar file that `quit workspace backup` wrote.")],
    workspace: options.Workspace = Path("workspace"),
    as_json: options.Json = False,
) -> None:
    """Make a workspace from a backup, in a new folder, whole or not at all; every file is compared with its checksum.

    Example: `quit workspace restore workspace-2026-11-21.tar -w restored`
    """
    from quit.engine.workspace import Workspace
    from quit.operations.backup import restore as unpack

    with working("restore"):
        report = unpack(archive, workspace)
    sources = (Workspace.open(workspace).build or {}).get("sources", [])
    missing = [text for text in sources if not Path(text.partition(":")[2]).exists()]
    lines = [
        f"{workspace}: {report.files:,} files, {report.bytes / _MIB:,.1f} MiB, every checksum right",
        *(
            f"not here: {text}. To build again, put it there or name its place: quit build -w "
            f"{shell_word(workspace)} --source KIND:PATH"
            for text in missing
        ),
    ]
    show({"path": str(workspace), "files": report.files, "missing_sources": missing}, as_json, lines)


@app.command("gc")
def gc(
    workspace: options.Workspace = Path("workspace"),
    remove: Annotated[bool, typer.Option("--remove", help="Remove them. Without it nothing is changed.")] = False,
    keep: Annotated[int, typer.Option("--keep", min=0, help="Leave so many of each stage, the newest.")] = 0,
    days: Annotated[float, typer.Option("--days", min=0, help="Leave what is younger than so many days.")] = 0.0,
    wait: WaitOption = 180.0,
    as_json: options.Json = False,
) -> None:
    """List tables that other settings, sources or versions left behind, or remove them. A dry run unless --remove is
    given.

    Current tables, those of the last build, logs, reviews and releases are never touched.

    Example: `quit workspace gc --keep 1`, then the same with `--remove`
    """
    from quit.operations.garbage import collect, unused

    opened = open_workspace(workspace)
    folders = unused(opened, keep=keep, days=days)
    freed = collect(opened, folders, wait) if remove else 0
    total = sum(folder.bytes for folder in folders)
    rows = [{name: getattr(folder, name) for name in ("run", "fingerprint", "bytes", "complete")} for folder in folders]
    lines = []
    for folder in folders:
        day = time.strftime("%Y-%m-%d", time.localtime(folder.changed))
        state = "" if folder.complete else ", unfinished"
        size = f"{folder.files:,} files, {folder.bytes / _MIB:,.1f} MiB"
        lines.append(f"{folder.run} {folder.fingerprint}: {size}, {day}{state}")
    if not folders:
        lines.append("Nothing is left over.")
    elif remove:
        lines.append(f"{freed / _MIB:,.1f} MiB freed")
    else:
        lines.append(f"{total / _MIB:,.1f} MiB could be freed: run the same command with --remove")
    show({"removed": remove, "bytes": total, "runs": rows}, as_json, lines)

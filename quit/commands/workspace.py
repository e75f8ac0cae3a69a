"""``quit workspace``: garbage."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from quit.commands import options
from quit.commands.declaring import Group
from quit.commands.options import open_workspace, show

app = Group("Look after a workspace: free space.")
_MIB = 1 << 20


@app.command("gc")
def gc(
    workspace: options.Workspace = Path("workspace"),
    remove: bool = False,
    keep: Annotated[int, typer.Option(min=0)] = 0,
    as_json: options.Json = False,
) -> None:
    """List tables that other settings, sources or versions left behind, or remove them. A dry run unless --remove is
    given.

    Current tables, those of the last build, logs, reviews and releases are never touched.

    Example: `quit workspace gc --keep 1`, then the same with `--remove`

    Args:
        remove: Remove them. Without it nothing is changed.
        keep: Leave so many of each stage, the newest.
    """
    from quit.operations.garbage import remove_tables, unused_tables

    opened = open_workspace(workspace)
    tables = unused_tables(opened, keep=keep)
    freed = remove_tables(opened, tables) if remove else 0
    total = sum(each.bytes for each in tables)
    rows, lines = [], []
    for each in tables:
        run, fingerprint, _ = each.stage_run
        rows.append({"run": run, "fingerprint": fingerprint, "bytes": each.bytes, "complete": each.complete})
        day = time.strftime("%Y-%m-%d", time.localtime(each.changed))
        size = f"{each.files:,} files, {each.bytes / _MIB:,.1f} MiB"
        lines.append(f"{run} {fingerprint}: {size}, {day}{'' if each.complete else ', unfinished'}")
    if not tables:
        lines.append("Nothing is left over.")
    elif remove:
        lines.append(f"{freed / _MIB:,.1f} MiB freed")
    else:
        lines.append(f"{total / _MIB:,.1f} MiB could be freed: run the same command with --remove")
    show({"removed": remove, "bytes": total, "runs": rows}, as_json, lines)

"""``quit settings`` and ``quit doctor``: what is in force, and what is missing on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from quit.commands import options
from quit.commands.options import open_workspace, print_json, show
from quit.errors import SettingsError
from quit.render.table import Table


def settings(
    profile: options.NamedProfile = "embedded",
    set_: options.Set = None,
    workspace: Annotated[
        Path | None,
        typer.Option("--workspace", "-w", help="This workspace's last build, instead of a profile."),
    ] = None,
    toml: Annotated[bool, typer.Option("--toml", help="Print the profile itself, to copy and change.")] = False,
    as_json: options.Json = False,
) -> None:
    """Print the effective settings, each with where it comes from.

    Examples: `quit settings --profile paper --set labels.max_new_tokens=16`, `quit settings -w workspace`, `quit
    settings --profile embedded --toml > mine.toml`
    """
    from quit.settings import load, profile_file

    if toml:
        if set_ or as_json:
            raise SettingsError("--toml prints the profile as it is: leave out --set and --json.")
        typer.echo(profile_file(profile).read_bytes(), nl=False)
        return
    if workspace:
        from quit.engine.planning import last_build_options

        build = last_build_options(open_workspace(workspace))
        profile, set_ = build["profile"], [*build["overrides"], *(set_ or ())]
    rows = [{"key": key, "value": value, "origin": origin} for key, value, origin in load(profile, set_ or ()).rows()]
    cells = [(row["key"], row["origin"], row["value"]) for row in rows]
    show(rows, as_json, [Table("", ("setting", "from", "value"), cells, (1, 2))])


def doctor(
    workspace: Annotated[
        Path | None, typer.Option("--workspace", "-w", help="Also check this workspace, with its own profile.")
    ] = None,
    profile: options.Profile = None,
    as_json: options.Json = False,
) -> None:
    """Check the installation, models, servers and settings, and say what to do about each fault.

    Example: `quit doctor -w workspace --profile paper`
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

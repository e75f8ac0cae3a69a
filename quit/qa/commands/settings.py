"""``quit settings``: what is in force, in the sections of QA systems too."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from quit.commands.options import open_workspace, show
from quit.errors import SettingsError
from quit.qa.commands import options
from quit.render.table import Table


def settings(
    profile: options.NamedProfile = "embedded",
    set_: options.Set = None,
    workspace: Annotated[Path | None, typer.Option("-w")] = None,
    toml: bool = False,
    as_json: options.Json = False,
) -> None:
    """Print the effective settings, each with where it comes from.

    Examples: `quit settings --profile paper --set labels.max_new_tokens=16`, `quit settings -w workspace`, `quit
    settings --profile embedded --toml > mine.toml`

    Args:
        workspace: This workspace's last build, instead of a profile.
        toml: Print the profile itself, to copy and change.
    """
    from quit.qa.settings import load
    from quit.settings import profile_file

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

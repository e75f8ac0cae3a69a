"""``quit doctor``: what is missing on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from quit.commands import options
from quit.commands.options import print_json


def doctor(
    workspace: Annotated[Path | None, typer.Option("-w")] = None,
    profile: options.Profile = None,
    as_json: options.Json = False,
) -> None:
    """Check the installation, models, servers and settings, and say what to do about each fault.

    Example: `quit doctor -w workspace --profile paper`

    Args:
        workspace: Also check this workspace, with its own profile.
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

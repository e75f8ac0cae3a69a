"""``quit serve``: flows as Prefect deployments, with the profile's schedules."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from quit.commands import options
from quit.commands.options import show
from quit.common.terminal import echo


def serve(
    workspace: Annotated[list[Path] | None, typer.Option("-w")] = None,
    profile: Annotated[str | None, typer.Option("-p")] = None,
    set_: list[str] | None = None,
    api_url: str | None = None,
    list_: bool = False,
    as_json: options.Json = False,
) -> None:
    """Offer build, review-sync, label-update and release in Prefect, and start their runs on schedules.

    A build takes sources, profile and settings from the workspace's last build when it starts. Runs until stopped.
    --json and --list only say what would be deployed.

    Example: `quit serve --profile nightly.toml --api-url http://127.0.0.1:4200/api`

    Args:
        workspace: Folder of a workspace; repeat for several.
        profile: TOML file with schedules, of which nothing else is taken; the profile of each workspace's last build if
            not given.
        set_: Override a setting of serving or schedules: serving.limit=2.
        api_url: Prefect server, such as http://127.0.0.1:4200/api.
        list_: Only say what would be deployed.
    """
    folders = workspace or [Path("workspace")]
    if api_url:
        os.environ["PREFECT_API_URL"] = api_url
    from quit.common.endpoints import address
    from quit.flows.calling import server_url
    from quit.flows.serve import plan, reconcile, serving_of
    from quit.flows.serve import serve as serve_flows

    planned = plan(folders, profile, set_)
    rows = [each.to_dict() for each in planned]
    if list_ or as_json:
        return _print(rows, as_json)
    url, serving = server_url() or "", serving_of(folders, profile, set_)
    deployments, differences = reconcile(planned)
    _print(rows)
    for line in differences:
        echo(f"Attention: {line}", err=True)
    echo(f"\nPrefect's pages: {address(url).removesuffix('/api')}", err=True)
    echo("Serving; Ctrl-C stops it. Runs that are due meanwhile begin at the next start.", err=True)
    serve_flows(deployments, serving.limit, serving.poll_seconds)


def _print(rows: list[dict[str, Any]], as_json: bool = False) -> None:
    width = max((len(row["deployment"]) for row in rows), default=0)
    lines = []
    for row in rows:
        next_run = f"next {row['next']}" if row["next"] else "paused"
        schedule = f"{row['cron']} {row['timezone']}, {next_run}" if row["cron"] else "when asked"
        lines.append(f"{row['deployment']:<{width}}  {schedule}")
    show(rows, as_json, lines)

"""``quit serve``: flows as Prefect deployments, with the profile's schedules."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from quit.commands import options
from quit.commands.options import load_settings, show
from quit.common.terminal import echo
from quit.errors import SettingsError


def serve(
    workspace: Annotated[
        list[Path] | None,
        typer.Option("--workspace", "-w", help="Folder of a workspace; repeat for several."),
    ] = None,
    source: Annotated[
        list[str] | None,
        typer.Option("--source", "-s", help="KIND:PATH of builds; those of each workspace's last build if not given."),
    ] = None,
    profile: options.NamedProfile = "embedded",
    set_: options.Set = None,
    api_url: Annotated[
        str | None, typer.Option("--api-url", help="Prefect server, such as http://127.0.0.1:4200/api.")
    ] = None,
    with_server: Annotated[
        bool, typer.Option("--with-server", help="Start a Prefect server on this machine, with its pages.")
    ] = False,
    list_: Annotated[bool, typer.Option("--list", help="Only say what would be deployed.")] = False,
    as_json: options.Json = False,
) -> None:
    """Offer build, review-sync, label-update, release and benchmark in Prefect, and start their runs on the profile's
    schedules.

    Runs until stopped. --json and --list only say what would be deployed.

    Example: `quit serve --profile nightly.toml --with-server`
    """
    from quit.flows.server import prefect_server

    if with_server and api_url:
        raise SettingsError(
            "--with-server starts a Prefect server here, and --api-url names another: leave one out. The port of the "
            "one here: --set serving.server_port=4201"
        )
    effective = load_settings(profile, set_)
    folders = workspace or [Path("workspace")]
    if api_url:
        os.environ["PREFECT_API_URL"] = api_url
    only_list = list_ or as_json
    with prefect_server(with_server and not only_list, effective.serving) as url:
        if url:
            os.environ["PREFECT_API_URL"] = url
        from quit.flows.serve import check_server, plan
        from quit.flows.serve import serve as serve_flows

        deployments = plan(folders, effective, profile, set_ or [], source or [])
        server = "" if only_list else check_server(deployments)
        _print([deployment.to_dict() for deployment in deployments], as_json)
        if only_list:
            return
        echo(f"\nPrefect's pages: {server.removesuffix('/api')}", err=True)
        echo("Serving; Ctrl-C stops it. Runs that are due meanwhile begin at the next start.", err=True)
        serve_flows(deployments, effective.serving.limit, effective.serving.poll_seconds)


def _print(rows: list[dict[str, Any]], as_json: bool) -> None:
    width = max((len(row["deployment"]) for row in rows), default=0)
    lines = []
    for row in rows:
        when = f"{row['cron']} {row['timezone']}, " + (f"next {row['next']}" if row["next"] else "paused")
        lines.append(f"{row['deployment']:<{width}}  {when if row['cron'] else 'when asked'}")
    show(rows, as_json, lines)

"""``quit status``: how far a workspace is, once, watched, or for Prometheus."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from quit.commands.options import JsonOption, WorkspaceOption, open_workspace, print_json
from quit.common.terminal import echo
from quit.errors import SettingsError


def status(
    workspace: WorkspaceOption = Path("workspace"),
    left_out: Annotated[
        bool, typer.Option("--left-out", help="List every record, hint and question that was left out, and why.")
    ] = False,
    as_json: JsonOption = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Keep looking; piped output gets a line for each change. Ctrl-C ends it.")
    ] = False,
    interval: Annotated[
        float | None, typer.Option("--interval", min=0.1, help="With --watch: seconds between looks.")
    ] = None,
    until_done: Annotated[
        bool,
        typer.Option("--until-done", help="With --watch: end when every stage is complete and nobody works on it."),
    ] = False,
    prometheus: Annotated[
        bool, typer.Option("--prometheus", help="Print metrics, for node_exporter's textfile collector.")
    ] = False,
) -> None:
    """Say how far each stage is, what was left out and why.

    Examples: `quit status -w W`, `quit status -w W --left-out`, `quit status -w W --watch --until-done`
    """
    if as_json + watch + prometheus > 1 or (left_out and (watch or prometheus)):
        raise SettingsError("Name one of --json, --watch and --prometheus; --left-out goes with --json only.")
    if watch:
        from quit.status.watching import WATCH_SECONDS
        from quit.status.watching import watch as look

        look(workspace, interval or WATCH_SECONDS, until_done)
        return

    opened = open_workspace(workspace)
    if prometheus:
        from quit.status.metrics import as_text

        echo(as_text([workspace]), nl=False)
        return
    from quit.commands.console import print_asked, print_left_out, print_origins, print_replies, print_status
    from quit.common.files import is_url
    from quit.engine.planning import readable_build
    from quit.status.summary import as_dict, readers_table
    from quit.status.summary import left_out as rows_left_out

    if left_out:
        rows = rows_left_out(opened)
        print_json(rows) if as_json else print_left_out(rows)
        return

    pipeline = readable_build(opened)
    if as_json:
        print_json(as_dict(opened, pipeline))
    else:
        print_status(opened, pipeline)
        # Behind a URL the answers would have to be fetched first.
        if not is_url(opened.address):
            readers = readers_table(opened)
            if any(cut or sentences for *_, cut, sentences in readers):
                print_replies(readers)
            print_asked(opened)
            print_origins(opened)

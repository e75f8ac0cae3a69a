"""``quit report`` and ``quit browse``: what people look at."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from quit.commands import options
from quit.commands.options import print_json, working
from quit.common.terminal import echo


def report(
    workspace: options.WorkspaceOrRelease = Path("workspace"),
    out: Annotated[Path | None, typer.Option("-o")] = None,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Write one HTML page about the dataset: what bounds the scores, what was left out, hints, types, labels, readers,
    review, costs, releases, examples. Of a release: what it holds of these, written beside its folder.

    The page needs no network and is the same for the same workspace. People who reviewed are numbered, not named.

    Examples: `quit report`, `quit report -w workspace/releases/v1 --out v1.html`

    Args:
        out: The file to write; WORKSPACE/report.html if not given, RELEASE.html beside a release.
    """
    from quit.library.tables import open_tables

    tables = open_tables(workspace)
    if as_json:
        with working("report", quiet):
            print_json(tables.figures())
        return
    target = tables.report(out, progress=not quiet)
    if not quiet:
        name = target if out or tables.kind == "release" else f"{workspace}/report.html"
        echo(f"{name}: {target.stat().st_size / 1024:,.0f} KiB")


def browse(
    workspace: options.WorkspaceOrRelease = Path("workspace"),
    port: Annotated[int, typer.Option(min=0, max=65535)] = 8095,
) -> None:
    """Search the questions of a workspace, or of a release, in a web browser, narrow them to what needs
    a look (leaks, no label 2, disagreement, cut replies), and open one: hints, passages, answers, verdicts, reviews,
    history.

    Only this machine can reach the page, and nothing can be changed there. Ctrl-C ends it.

    Examples: `quit browse --port 8096`, `quit browse -w workspace/releases/v1`

    Args:
        port: Port on this machine; 0 takes a free one.
    """
    from quit.engine.request import settings_of
    from quit.release.view import open_to_read
    from quit.report.browse import serve

    opened = open_to_read(workspace)
    serve(opened, settings_of(opened), port, lambda url: echo(f"{url}  (Ctrl-C ends it)"))

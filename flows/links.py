"""Where the things of a workspace are, for the summaries that flows show."""

from __future__ import annotations

from pathlib import Path

from quit.common.endpoints import address
from quit.dataset.release import FOLDER, releases_of
from quit.engine.workspace import Workspace
from quit.review.store import ReviewStore


def markdown_links(workspace: Workspace) -> str:
    """Return where things are, as a Markdown list: the workspace, its review project, its releases."""
    root = workspace.address
    lines = [f"- workspace: [{root}]({Path(root).as_uri()})"]
    project = ReviewStore(workspace).project
    if project.get("url") and project.get("id"):
        url = f"{address(project['url'])}/projects/{project['id']}/data"
        lines.append(f"- review project: [{url}]({url})")
    for release in releases_of(workspace):
        there = f"{root}/{FOLDER}/{release.name}"
        lines.append(f"- release {release.name} (`{release.content_id[:12]}`): [{there}]({Path(there).as_uri()})")
    return "\n".join(lines) + "\n\n"

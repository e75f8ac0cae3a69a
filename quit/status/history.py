"""The diary of a workspace's runs, ``W/runs.jsonl``: for metrics, ``quit status`` and whoever asks when it last worked.

One line a run: ``flow``, ``outcome`` (``done``, ``nothing new``, ``skipped``, ``failed``), ``started`` and ``finished``
(seconds since 1970), ``message``, ``run`` (Prefect's name of it). No table: it tells what happened, not what the
dataset is. A run that was killed has no line.
"""

from __future__ import annotations

import json
import os
from typing import Any, Literal

from quit.common.json_lines import diary_lines
from quit.engine.workspace import Workspace

Outcome = Literal["done", "nothing new", "skipped", "failed"]
OUTCOMES: tuple[Outcome, ...] = ("done", "nothing new", "skipped", "failed")
_FILE = "runs.jsonl"


def record_run(
    workspace: Workspace, flow: str, outcome: Outcome, started: float, finished: float, message: str = "", run: str = ""
) -> None:
    """Append a run to the diary of a workspace; nothing where there is none (a build that never began)."""
    if not workspace.exists:
        return
    line = {"flow": flow, "outcome": outcome, "started": started, "finished": finished, "message": message, "run": run}
    with workspace.changing(_FILE) as path, path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line, ensure_ascii=False) + "\n")  # one write, so lines of two processes do not mix
        file.flush()
        os.fsync(file.fileno())


def runs_of(workspace: Workspace) -> list[dict[str, Any]]:
    """Return the runs of a workspace, oldest first. A line cut short by a kill is left out."""
    runs: list[dict[str, Any]] = []
    for _, entry in diary_lines(workspace.path / _FILE):
        try:
            runs.append({**entry, "started": float(entry["started"]), "finished": float(entry["finished"])})
            _ = entry["flow"], entry["outcome"]
        except (ValueError, KeyError, TypeError):
            continue
    return runs

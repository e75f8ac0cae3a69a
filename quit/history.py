"""The diary of a workspace's runs, ``W/runs.jsonl``: for metrics, ``quit status`` and whoever asks when it last worked.

One line a run: ``flow``, ``outcome`` (``done``, ``nothing new``, ``skipped``, ``failed``), ``started`` and ``finished`` (seconds since 1970),
``message``, ``run`` (Prefect's name of it). No table: it tells what happened, not what the dataset is. A run that was killed has no line.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Literal

from quit.files import writing

Outcome = Literal["done", "nothing new", "skipped", "failed"]
OUTCOMES: tuple[Outcome, ...] = ("done", "nothing new", "skipped", "failed")
_FILE = "runs.jsonl"


def record_run(
    path: Path, flow: str, outcome: Outcome, started: float, finished: float, message: str = "", run: str = ""
) -> None:
    """Append a run to the diary of the workspace ``path``; nothing where there is no workspace (a build that never began)."""
    if not (path / "workspace.json").is_file():
        return
    line = {"flow": flow, "outcome": outcome, "started": started, "finished": finished, "message": message, "run": run}
    with writing(path / _FILE), (path / _FILE).open("a", encoding="utf-8") as file:
        file.write(json.dumps(line, ensure_ascii=False) + "\n")  # one write, so lines of two processes do not mix
        file.flush()
        os.fsync(file.fileno())


def runs_of(path: Path) -> list[dict[str, Any]]:
    """Return the runs of a workspace, oldest first. A line cut short by a kill is left out."""
    found: list[dict[str, Any]] = []
    try:
        lines = (path / _FILE).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return found
    for line in lines:
        try:
            entry = json.loads(line)
            found.append({**entry, "started": float(entry["started"]), "finished": float(entry["finished"])})
            _ = entry["flow"], entry["outcome"]
        except (ValueError, KeyError, TypeError):
            continue
    return found

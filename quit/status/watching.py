"""``quit status --watch``: how a build proceeds, from the workspace's files. A table that is redrawn; piped, a line for
each change."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from quit.common.terminal import SafeConsole
from quit.engine.workspace import Workspace
from quit.errors import QuitError
from quit.status.history import runs_of
from quit.status.stages import StageStatus, lock_holder, status
from quit.status.usage import entries

WATCH_SECONDS = 2.0
"""Seconds between two looks at a workspace, unless told otherwise."""


class Rates:
    """How fast shards come: what was seen since the watch began."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._first: dict[str, tuple[float, int]] = {}

    def see(self, row: StageStatus) -> tuple[float | None, float | None]:
        """Return (shards a minute, seconds left) of a stage run, None where nothing was seen to move yet."""
        now = self._clock()
        since, before = self._first.setdefault(row.run, (now, row.shards_done))
        if row.shards_done < before:  # another build began
            self._first[row.run] = (now, row.shards_done)
            return None, None
        if row.shards_done == before or now <= since:
            return None, None
        rate = (row.shards_done - before) / (now - since)
        return 60 * rate, (row.shards - row.shards_done) / rate


def is_done(rows: Sequence[StageStatus]) -> bool:
    """Whether every stage run is complete."""
    return bool(rows) and all(row.state == "complete" for row in rows)


def footer(workspace: Workspace) -> list[str]:
    """Return who holds the workspace, how its last run ended, and what was asked last."""
    try:
        held = lock_holder(workspace)
    except QuitError as error:  # a store that does not answer now may do so at the next look
        return [str(error)]
    lines = [
        f"held by process {held.get('pid')} on {held.get('host')} since {held.get('since')}"
        if held
        else "nobody works on it"
    ]
    if runs := runs_of(workspace):
        last = runs[-1]
        took = last["finished"] - last["started"]
        ended = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(last["finished"]))
        message = f": {last['message']}" if last.get("message") else ""
        lines.append(f"last run: {last['flow']}, {last['outcome']}, {ended}, {took:.1f} s{message}")
    if asked := entries(workspace.path):
        entry = asked[-1]
        rate = f", {entry['requests'] / entry['seconds']:.1f}/s" if entry.get("seconds") else ""
        lines.append(
            f"last asked: {entry['model']} for {entry['run']}: {entry['requests']:,} replies, {entry['cached']:,} from "
            f"the cache{rate}"
        )
    return lines


def watch(place: str | Path, interval: float, until_done: bool, console: Console | None = None) -> bool:
    """Show a workspace until interrupted, or with ``until_done`` until it is complete and nobody holds it; returns
    whether it is.

    A workspace that is not there yet is waited for.
    """
    console = console or SafeConsole(highlight=False)
    rates, shown = Rates(), dict[str, str]()
    try:
        if console.is_terminal:
            with Live(console=console, auto_refresh=False) as live:
                while True:
                    workspace, rows = _read(place)
                    live.update(_table(place, workspace, rows, rates), refresh=True)
                    if until_done and is_done(rows) and workspace and _is_free(workspace):
                        return True
                    time.sleep(interval)
        while True:
            workspace, rows = _read(place)
            for line in changes(workspace, rows, shown):
                console.print(escape(line), soft_wrap=True)
            if until_done and is_done(rows) and workspace and _is_free(workspace):
                return True
            time.sleep(interval)
    except KeyboardInterrupt:
        return is_done(_read(place)[1])


def changes(workspace: Workspace | None, rows: Sequence[StageStatus], told: dict[str, str]) -> list[str]:
    """Return a line for each thing that is not as it was reported last; ``told`` remembers."""
    now = {row.run: f"{row.number:>2} {row.run}: {_state(row)}" for row in rows}
    now |= {f"({position})": line for position, line in enumerate(footer(workspace) if workspace else [])}
    lines = [line for key, line in now.items() if told.get(key) != line]
    told.update(now)
    return lines


def _read(place: str | Path) -> tuple[Workspace | None, list[StageStatus]]:
    try:
        workspace = Workspace.open(place)
        return workspace, status(workspace, rejects=False)
    except (QuitError, FileNotFoundError):  # not there yet, or it went while it was read: the next look will tell
        return None, []


def _is_free(workspace: Workspace) -> bool:
    try:
        return lock_holder(workspace) is None
    except QuitError:
        return False


def _state(row: StageStatus) -> str:
    if row.state == "complete":
        return f"complete, {row.made}"
    return f"{row.shards_done} of {row.shards} shards" if row.shards else row.state


def _table(place: str | Path, workspace: Workspace | None, rows: Sequence[StageStatus], rates: Rates) -> Group:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("", "stage", "", "shards", "a minute", "left", "made"):
        table.add_column(name, justify="left" if name in ("stage", "made") else "right", no_wrap=name != "made")
    for row in rows:
        speed, left = rates.see(row)
        share = row.shards_done / row.shards if row.shards else 0
        bar = "█" * round(10 * share) + "░" * (10 - round(10 * share))
        style = {"complete": "green", "partial": "yellow"}.get(row.state, "dim")
        moving = row.state == "partial"
        table.add_row(
            str(row.number),
            row.run,
            f"[{style}]{bar}[/]",
            f"{row.shards_done}/{row.shards}" if row.shards else "",
            f"{speed:.1f}" if speed is not None and moving else "",
            span(left) if left is not None and moving else "",
            row.made,
        )
    below = Text("\n".join(footer(workspace)) if workspace else f"{place} is not there yet")
    return Group(Text(str(place), style="bold"), table, Text(""), below)


def span(seconds: float) -> str:
    """Return a time as a clock shows it.

    >>> span(59.6), span(3_725)
    ('1:00', '1:02:05')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"

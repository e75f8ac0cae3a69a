"""``quit status --watch``: how a build goes on, from the workspace's files. A table that is redrawn; piped, a line for each change."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from quit.errors import QuitError
from quit.history import runs_of
from quit.stage_progress import Progress, lock_holder, progress
from quit.usage import entries
from quit.workspace import Workspace


class Rates:
    """How fast shards come: what was seen since the watch began."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._first: dict[str, tuple[float, int]] = {}

    def see(self, one: Progress) -> tuple[float | None, float | None]:
        """Return (shards a minute, seconds left) of a stage run, None where nothing was seen to move yet."""
        now = self._clock()
        since, before = self._first.setdefault(one.run, (now, one.done))
        if one.done < before:  # another build began
            self._first[one.run] = (now, one.done)
            return None, None
        if one.done == before or now <= since:
            return None, None
        rate = (one.done - before) / (now - since)
        return 60 * rate, (one.shards - one.done) / rate


def is_done(rows: Sequence[Progress]) -> bool:
    """Whether every stage run is complete."""
    return bool(rows) and all(one.state == "complete" for one in rows)


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
        said = f": {last['message']}" if last.get("message") else ""
        lines.append(f"last run: {last['flow']}, {last['outcome']}, {ended}, {took:.1f} s{said}")
    if asked := entries(workspace.path):
        one = asked[-1]
        rate = f", {one['requests'] / one['seconds']:.1f}/s" if one.get("seconds") else ""
        lines.append(
            f"last asked: {one['model']} for {one['run']}: {one['requests']:,} replies, {one['cached']:,} from the cache{rate}"
        )
    return lines


def watch(place: str | Path, interval: float, until_done: bool, console: Console | None = None) -> bool:
    """Show a workspace until interrupted, or with ``until_done`` until it is complete and nobody holds it; returns whether it is.

    A workspace that is not there yet is waited for.
    """
    console = console or Console(highlight=False)
    rates, told = Rates(), dict[str, str]()
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
            for line in changes(workspace, rows, told):
                console.print(escape(line), soft_wrap=True)
            if until_done and is_done(rows) and workspace and _is_free(workspace):
                return True
            time.sleep(interval)
    except KeyboardInterrupt:
        return is_done(_read(place)[1])


def changes(workspace: Workspace | None, rows: Sequence[Progress], told: dict[str, str]) -> list[str]:
    """Return a line for each thing that is not as it was told last; ``told`` remembers."""
    now = {one.run: f"{one.number:>2} {one.run}: {_state(one)}" for one in rows}
    now |= {f"({place})": line for place, line in enumerate(footer(workspace) if workspace else [])}
    lines = [line for key, line in now.items() if told.get(key) != line]
    told.update(now)
    return lines


def _read(place: str | Path) -> tuple[Workspace | None, list[Progress]]:
    try:
        workspace = Workspace.open(place)
        return workspace, progress(workspace)
    except (QuitError, FileNotFoundError):  # not there yet, or it went while it was read: the next look will tell
        return None, []


def _is_free(workspace: Workspace) -> bool:
    try:
        return lock_holder(workspace) is None
    except QuitError:
        return False


def _state(one: Progress) -> str:
    if one.state == "complete":
        return "complete" + "".join(f", {rows:,} {name.replace('_', ' ')}" for name, rows in one.rows.items())
    return f"{one.done} of {one.shards} shards" if one.shards else one.state


def _table(place: str | Path, workspace: Workspace | None, rows: Sequence[Progress], rates: Rates) -> Group:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("", "stage", "", "shards", "a minute", "left", "made"):
        table.add_column(name, justify="left" if name in ("stage", "made") else "right")
    for one in rows:
        speed, left = rates.see(one)
        share = one.done / one.shards if one.shards else 0
        bar = "█" * round(10 * share) + "░" * (10 - round(10 * share))
        style = {"complete": "green", "partial": "yellow"}.get(one.state, "dim")
        made = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in one.rows.items())
        moving = one.state == "partial"
        table.add_row(
            str(one.number),
            one.run,
            f"[{style}]{bar}[/]",
            f"{one.done}/{one.shards}" if one.shards else "",
            f"{speed:.1f}" if speed is not None and moving else "",
            _span(left) if left is not None and moving else "",
            made,
        )
    below = Text("\n".join(footer(workspace)) if workspace else f"{place} is not there yet")
    return Group(Text(str(place), style="bold"), table, Text(""), below)


def _span(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"

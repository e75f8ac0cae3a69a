"""How far a job is: bars on a terminal and in a notebook, lines on stderr where it is piped."""

from __future__ import annotations

import importlib
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import Event, Thread, get_ident
from typing import Any

from rich.console import RenderableType
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, Task, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text

from quit.common.estimate import span
from quit.common.progress import WAIT_SECONDS, Listener, listening, saying
from quit.common.stopping import on_stop
from quit.render import terminal
from quit.text.words import counted

warnings.filterwarnings("ignore", "IProgress not found")  # tqdm, which others import in a notebook, warns of it
_PACE = 3600.0  # seconds back to which a pace is measured: a shard may take many minutes
_TICK = 0.5  # seconds between looks at the language models' meter


class Notes(Listener):
    """Prints what a job notes to stderr."""

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet
        self.printed_at = 0.0
        """When something was printed last, by the monotonic clock."""

    def noted(self, text: str, loud: bool) -> None:
        """Print one line, with ``quiet`` only a loud one."""
        if loud or not self.quiet:
            self.printed_at = time.monotonic()
            terminal.sentence(text, stderr=True)


class _TimeLeft(TimeRemainingColumn):
    """The time left, once a pace is known."""

    def render(self, task: Task) -> Text:
        """Return it with the word, or nothing."""
        return Text("") if task.time_remaining is None else super().render(task).append(" left")


class _Bars(Progress):
    """Bars with the time left, and the requests to language models below them."""

    requests = ""

    def __init__(self, quiet: bool) -> None:
        super().__init__(
            SpinnerColumn(),
            TextColumn("{task.description:<28}"),
            BarColumn(),
            TextColumn("{task.fields[share]:>4}"),
            TimeElapsedColumn(),
            _TimeLeft(),
            console=terminal.console(stderr=True),
            disable=quiet or not terminal.console(stderr=True).is_terminal,
            transient=True,
            redirect_stdout=False,
            speed_estimate_period=_PACE,
        )
        on_stop(self.stop)

    def get_renderables(self) -> Iterator[RenderableType]:
        """Yield the bars, and the line below them."""
        yield from super().get_renderables()
        if self.requests:
            yield Text(f"  {self.requests}", no_wrap=True, overflow="ellipsis")


class _NotebookBar:
    """A line below a notebook's cell that is written anew."""

    def __init__(self) -> None:
        display = importlib.import_module("IPython.display").display
        self._line = display({"text/plain": ""}, raw=True, display_id=True)

    def show(self, *texts: str) -> None:
        """Replace what it says."""
        self._line.update({"text/plain": "  ".join(filter(None, texts))}, raw=True)


class BuildConsole(Notes):
    """Prints a build's notes, and a bar for each stage run at work. Use as a context manager around the job, in the
    thread that plans it: builds in other threads have their own."""

    def __init__(self, quiet: bool = False) -> None:
        super().__init__(quiet)
        self._thread = get_ident()
        err = terminal.console(stderr=True)
        self._lines = not (quiet or err.is_terminal or err.is_jupyter)
        self._bars = _Bars(quiet)
        self._build = self._bars.add_task("build", total=None, share="")
        self._runs: dict[str, Task] = {}
        self._notebook: _NotebookBar | None = None
        self._ended = Event()

    def __enter__(self) -> BuildConsole:
        self._contexts = ExitStack()
        self._contexts.enter_context(listening(self))
        if self._lines:
            self._contexts.enter_context(saying(self._line))
        return self

    def _line(self, seconds: float) -> str:
        at_work = [task for task in list(self._runs.values()) if task.visible][-1:]
        parts = [part for task in at_work for part in (task.description.strip(), _left(task), self._bars.requests)]
        return f"   {span(seconds)}: {'; '.join(filter(None, parts)) or ('finishing' if self._runs else 'preparing')}"

    def build_begins(self, pipeline: Any) -> None:
        """Start the bars."""
        if get_ident() != self._thread:
            return
        self._whole, self._done = len(pipeline.runs), sum(map(pipeline.is_done, pipeline.runs))
        self._bars.start()
        self._notebook = _NotebookBar() if terminal.console(stderr=True).is_jupyter and not self.quiet else None
        Thread(target=self._watch, args=(pipeline.models.meter,), name="progress", daemon=True).start()

    def __exit__(self, *error: object) -> None:
        self._contexts.close()
        self._ended.set()
        self._bars.stop()
        if self._notebook and error[0] is None:
            self._notebook.show("100%", "done")

    def _watch(self, meter: Any) -> None:
        """Show what the language models do while a shard takes its hours."""
        while True:
            at_work = [task for task in list(self._runs.values()) if task.visible]
            requests = meter.line() if at_work else ""
            self._bars.requests = requests or self._bars.requests
            for task in at_work[-1:]:
                parts = (task.description, _left(task), requests)
                if self._notebook:
                    bar = f"{'█' * round(task.percentage / 5):░<20}"
                    self._notebook.show(f"{self._done} of {self._whole}", bar, f"{task.percentage:.0f}%", *parts)
            if self._ended.wait(_TICK):
                break

    def shards(self, number: int, run: str, done: int, count: int) -> None:
        """Move the bar of a stage run; piped output gets a line per finished one instead."""
        if get_ident() != self._thread:
            return
        text = f"{number:>2} {run}"
        if run not in self._runs:
            added = self._bars.add_task(text, total=count, completed=done, share="")
            self._bars.advance(added, 0)  # the pace is measured from here, not from the first finished shard
            self._runs[run] = self._bars.tasks[added]
        self._bars.update(self._runs[run].id, completed=done, share=f"{done / count:.0%}", visible=done < count)
        self._done += done == count
        self._bars.update(self._build, share=f"{self._done} of {self._whole}")
        if done == count and self._lines:
            terminal.console(stderr=True).print(f"{text}: done, {counted(count, 'shard')}", soft_wrap=True)


def _left(task: Task) -> str:
    return "" if task.time_remaining is None else f"{span(task.time_remaining)} left"


class _Parts(Notes):
    """A bar for each part of a job that says how far it is."""

    def __init__(self, bars: Progress, quiet: bool) -> None:
        super().__init__(quiet)
        self._bars = bars
        self._tasks: dict[str, Any] = {}

    def advanced(self, what: str, by: int, total: int | None) -> None:
        """Move the bar of ``what``."""
        if what not in self._tasks:
            self._tasks[what] = self._bars.add_task(escape(what), total=total, share="")
        task = self._bars.tasks[self._tasks[what]]
        done, whole = task.completed + by, task.total
        if whole is not None and done > whole and total:  # the same once more, over other texts
            whole = task.completed + total
        share = f"{min(1, done / whole):.0%}" if whole else f"{done:,.0f}"
        self._bars.update(self._tasks[what], completed=done, total=whole, share=share)


@contextmanager
def working(title: str, quiet: bool = False) -> Iterator[None]:
    """Print what is noted; on a terminal, a bar for ``title`` and one for each part that says how far it is, else lines
    from time to time."""
    bars = _Bars(quiet)
    bars.add_task(escape(title), total=None, share="")

    def line(seconds: float) -> str:
        parts = [f"{task.description} {task.fields['share']}" for task in bars.tasks[1:] if not task.finished]
        is_known = quiet or is_terminal or time.monotonic() - listener.printed_at < WAIT_SECONDS[-1]
        return "" if is_known else f"{title}: {'; '.join([span(seconds), *parts])}"

    listener, is_terminal = _Parts(bars, quiet), terminal.console(stderr=True).is_terminal
    with bars, listening(listener), saying(line):
        yield

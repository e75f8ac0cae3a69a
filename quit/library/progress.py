"""How far a job is: bars on a terminal and in a notebook, lines on stderr where it is piped."""

from __future__ import annotations

import importlib
import itertools
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from rich.markup import escape
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from quit.common.estimate import span
from quit.common.progress import Listener, listening
from quit.common.stopping import on_stop
from quit.common.terminal import SafeConsole
from quit.render.terminal import sentence
from quit.status.forecast import Forecast
from quit.text.words import counted

if TYPE_CHECKING:  # it imports every stage: for seconds no Prefect server would start
    from quit.engine.pipeline import Pipeline
    from quit.engine.plan import StageRun

warnings.filterwarnings("ignore", "IProgress not found")  # tqdm, which others import in a notebook, warns of it
_ERR = SafeConsole(stderr=True, highlight=False)
_TICK = 0.5  # seconds between looks at the forecast and the language models' meter


class Notes(Listener):
    """Prints what a job notes to stderr."""

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet

    def noted(self, text: str, loud: bool) -> None:
        """Print one line, with ``quiet`` only a loud one."""
        if loud or not self.quiet:
            sentence(text, _ERR)


class _BuildBar(Progress):
    """One bar, with the requests to language models below it."""

    requests = ""

    def get_renderables(self) -> Iterator[RenderableType]:
        """Yield the bar, and the line below it."""
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
    """Prints a build's notes, and its progress from the first shard on. Use as a context manager around the job."""

    def __init__(self, quiet: bool = False) -> None:
        super().__init__(quiet)
        self._pipeline: Pipeline | None = None
        self._forecast = Forecast({})
        self._bar = _BuildBar(
            SpinnerColumn(),
            TextColumn("{task.description:<26}"),
            BarColumn(20),
            TextColumn("{task.percentage:>3.0f}%"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            console=_ERR,
            disable=quiet or not _ERR.is_terminal,
            transient=True,
        )
        self._notebook: _NotebookBar | None = None
        self._lines = not (quiet or _ERR.is_terminal or _ERR.is_jupyter)
        self._before = self._share = 0.0
        self._what = "starting"
        self._task = self._bar.add_task(self._what, total=1.0, left="")
        self._current: str | None = None
        self._left = Event()

    def __enter__(self) -> BuildConsole:
        on_stop(self.stop)
        self._listening = listening(self)
        self._listening.__enter__()
        return self

    def build_begins(self, pipeline: Any) -> None:
        """Start the bar."""
        pending = {run.key: _usual_time(pipeline, run) for run in pipeline.runs if not pipeline.is_done(run)}
        self._forecast = Forecast(pending)
        self._before = self._share = 1 - len(pending) / len(pipeline.runs)
        self._pipeline = pipeline
        self._bar.update(self._task, completed=self._share)
        self._bar.start()
        self._notebook = _NotebookBar() if _ERR.is_jupyter and not self.quiet else None
        Thread(target=self._watch, name="progress", daemon=True).start()

    def __exit__(self, *error: object) -> None:
        self._listening.__exit__(None, None, None)
        self.stop()
        if self._notebook and error[0] is None:
            self._notebook.show("100%", "done")

    def stop(self) -> None:
        """End the bar, so that nothing of it is left on the terminal."""
        self._left.set()
        self._bar.stop()

    def _watch(self) -> None:
        """Move the bar and show what the language models do while a shard takes its hours; piped output gets a line
        per minute."""
        for tick in itertools.count():
            share = self._before + (1 - self._before) * self._forecast.share()
            self._share = max(self._share, share)  # never move the bar backwards
            line = self._pipeline.models.meter.line() if self._pipeline and self._current is not None else ""
            left = self._time_left()
            self._bar.update(self._task, completed=self._share, left=left)
            self._bar.requests = line or self._bar.requests
            if self._notebook:
                self._notebook.show(
                    f"{'█' * round(20 * self._share):░<20}", f"{self._share:.0%}", self._what, left, line
                )
            if tick and line and self._lines and tick % round(60 / _TICK) == 0:
                _ERR.print("; ".join(filter(None, (f"   {self._current}: {line}", left))), soft_wrap=True)
            if self._left.wait(_TICK):
                break

    def _time_left(self) -> str:
        left = self._forecast.left()
        return "" if left is None else f"{span(left)} left"

    def shards(self, number: int, run: str, done: int, count: int) -> None:
        """Move the bar of the whole build; piped output gets a line per finished stage instead."""
        self._forecast.see(run, done, count)
        self._what = f"{number:>2} {run}"
        self._bar.update(self._task, description=self._what)
        self._current = run if done < count else None
        if done == count and self._lines:
            line = f"{self._what}: done, {counted(count, 'shard')}"
            _ERR.print("; ".join(filter(None, (line, self._time_left()))), soft_wrap=True)


def _usual_time(pipeline: Pipeline, run: StageRun) -> tuple[str, float | None]:
    """Return what a stage run is like in time (``read, server``), and its usual seconds; None with a language model."""
    settings, judge = pipeline.settings, pipeline.settings.judge
    kind = "embedded"
    if run.reader:
        kind = next(reader.kind for reader in settings.readers if reader.name == run.reader)
    elif "judge" in run.stage.models and judge.kind != "equivalence":
        kind = judge.kind
    return f"{run.stage.name}, {kind}", run.stage.seconds if kind == "embedded" else None


class _TimeLeft(TimeRemainingColumn):
    """The time left of a bar whose total is known."""

    def render(self, task: Task) -> Text:
        """Return it with the word, or nothing."""
        return Text("") if task.total is None else super().render(task).append(" left")


class _Bars(Notes):
    """A bar, and the time left, for each part of a job that says how far it is."""

    def __init__(self, bar: Progress, quiet: bool) -> None:
        super().__init__(quiet)
        self._bar = bar
        self._tasks: dict[str, Any] = {}

    def advanced(self, what: str, by: int, total: int | None) -> None:
        """Move the bar of ``what``."""
        if what not in self._tasks:
            self._tasks[what] = self._bar.add_task(escape(what), total=total, share="")
        task = self._bar.tasks[self._tasks[what]]
        done, whole = task.completed + by, task.total
        if whole is not None and done > whole and total:  # the same once more, over other texts
            whole = task.completed + total
        share = f"{min(1, done / whole):.0%}" if whole else f"{done:,.0f}"
        self._bar.update(self._tasks[what], completed=done, total=whole, share=share)


@contextmanager
def working(title: str, quiet: bool = False) -> Iterator[None]:
    """Print what is noted; on a terminal, a bar for ``title`` and one for each part that says how far it is."""
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description:<28}"),
        BarColumn(),
        TextColumn("{task.fields[share]:>4}"),
        TimeElapsedColumn(),
        _TimeLeft(),
        console=_ERR,
        disable=quiet or not _ERR.is_terminal,
        transient=True,
        redirect_stdout=False,
    )
    bar.add_task(escape(title), total=None, share="")
    on_stop(bar.stop)
    with bar, listening(_Bars(bar, quiet)):
        yield

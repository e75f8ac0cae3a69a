"""How far a job is, on stderr: bars on a terminal, lines where it is piped."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from rich.markup import escape
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from quit.common.progress import Listener, listening
from quit.common.stopping import on_stop
from quit.common.terminal import SafeConsole
from quit.status.forecast import Forecast, span
from quit.text.words import counted

if TYPE_CHECKING:  # it imports every stage: for seconds no Prefect server would start
    from quit.engine.pipeline import Pipeline

_ERR = SafeConsole(stderr=True, highlight=False)
_TICK = 0.5  # seconds between looks at the forecast and the language models' meter


class Notes(Listener):
    """Prints what a job notes to stderr."""

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet

    def noted(self, text: str, loud: bool) -> None:
        """Print one line, with ``quiet`` only a loud one."""
        if loud or not self.quiet:
            _ERR.print(escape(text), soft_wrap=True)


def _progress(quiet: bool, *share: ProgressColumn, **options: Any) -> Progress:
    """Return a progress bar for stderr that leaves nothing behind; ``share``: the columns after the bar itself."""
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description:<28}"),
        BarColumn(),
        *share,
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=_ERR,
        disable=quiet or not _ERR.is_terminal,
        transient=True,
        **options,
    )


class _BuildBar(Progress):
    """One bar, with what language models are asked below it."""

    asked = ""

    def get_renderables(self) -> Iterator[RenderableType]:
        """Yield the bar, and the line below it."""
        yield from super().get_renderables()
        if self.asked:
            yield Text(f"  {self.asked}", no_wrap=True, overflow="ellipsis")


class BuildConsole(Listener):
    """The progress bar of a build, which listens to it, without its notes. Use as a context manager around the flow."""

    def __init__(self, pipeline: Pipeline, quiet: bool = False) -> None:
        self.quiet = quiet
        self._pipeline = pipeline
        self._forecast = _forecast(pipeline)
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
        self._task = self._bar.add_task("", total=1.0, left="")
        self._share = 0.0
        self._current: str | None = None
        self._left = Event()

    def __enter__(self) -> BuildConsole:
        self._bar.start()
        self._listening = listening(self)
        self._listening.__enter__()
        Thread(target=self._watch, name="progress", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.__exit__(None, None, None)
        self.stop()

    def stop(self) -> None:
        """End the bar, so that nothing of it is left on the terminal."""
        self._left.set()
        self._bar.stop()

    def _watch(self) -> None:
        """Move the bar and show what the language models do while a shard takes its hours; piped output gets a line a
        minute."""
        ticks = 0
        while not self._left.wait(_TICK):
            ticks += 1
            share = max(self._share, self._forecast.share())  # a bar that goes back tells nobody anything
            self._bar.update(self._task, completed=share, left=self._time_left())
            self._share = share
            line = self._pipeline.models.meter.line()
            if not line or self._current is None:
                continue
            self._bar.asked = line
            if not self.quiet and not _ERR.is_terminal and ticks % round(60 / _TICK) == 0:
                _ERR.print(f"   {self._current}: {line}; {self._time_left()}", soft_wrap=True)

    def _time_left(self) -> str:
        left = self._forecast.left()
        return "time left unknown" if left is None else f"{span(left)} left"

    def shards(self, number: int, run: str, done: int, count: int) -> None:
        """Move the bar of the whole build; piped output gets a line a finished stage instead."""
        self._forecast.see(run, done, count)
        self._bar.update(self._task, description=f"{number:>2} {run}")
        self._current = run if done < count else None
        if done == count and not self.quiet and not _ERR.is_terminal:
            _ERR.print(f"{number:>2} {run}: done, {counted(count, 'shard')}; {self._time_left()}", soft_wrap=True)


def _forecast(pipeline: Pipeline) -> Forecast:
    """Return the forecast of the stage runs that are still to do; a language model's are like no other's."""
    settings = pipeline.settings
    kinds = {reader.name: reader.kind for reader in settings.readers}
    judge = "embedded" if settings.judge.kind == "equivalence" else settings.judge.kind
    runs = {}
    for run in pipeline.runs:
        if not pipeline.is_done(run):
            kind = kinds[run.reader] if run.reader else judge if run.stage.name in ("select", "judge") else "embedded"
            runs[run.key] = f"{run.stage.name}, {kind}"
    return Forecast(runs, frozenset(alike for alike in runs.values() if not alike.endswith(", embedded")))


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
        done = task.completed + by
        if total and done > total:  # the same once more, over other texts
            self._bar.reset(self._tasks[what], total=total)
            done = by
        share = f"{done / total:.0%}" if total else f"{done:,.0f}"
        self._bar.update(self._tasks[what], completed=done, total=total, share=share)


@contextmanager
def working(title: str, quiet: bool = False) -> Iterator[None]:
    """Print what is noted; on a terminal, a bar for ``title`` and one for each part that says how far it is."""
    bar = _progress(quiet, TextColumn("{task.fields[share]:>4}"), redirect_stdout=False)
    bar.add_task(escape(title), total=None, share="")
    on_stop(bar.stop)
    with bar, listening(_Bars(bar, quiet)):
        yield

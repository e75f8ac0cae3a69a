"""The bars of a build, on a clock that is set by hand."""

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from io import StringIO
from types import SimpleNamespace

import pytest
from rich.console import Console

from quit import cli
from quit.common import progress as common
from quit.common.progress import build_begins, shards_done
from quit.library import progress
from quit.models.generation import Meter
from quit.render import terminal
from tests.running import until

PIPELINE = SimpleNamespace(runs=["collect", "read:a", "read:b"], is_done={"collect"}.__contains__)


class Build:
    """A build on a terminal of 120 columns, and its clock."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        screen = Console(file=StringIO(), force_terminal=True, width=120, get_time=lambda: self.now)
        monkeypatch.setattr(terminal, "console", lambda **_: screen)
        monkeypatch.setattr(progress._Bars, "start", lambda bars: None)
        self.meter = Meter()
        self.console = progress.BuildConsole()

    def lines(self, *events: tuple[float, str, int]) -> list[str]:
        """Report shards of four: seconds since the report before, stage run, finished shards. Return what is shown."""
        for seconds, run, done in events:
            self.now += seconds
            shards_done(8, run, done, 4)
        screen = Console(file=StringIO(), width=120)
        screen.print(*self.console._bars.get_renderables())
        return [" ".join(line.split()) for line in screen.file.getvalue().splitlines() if line.strip()]


@pytest.fixture
def build(monkeypatch: pytest.MonkeyPatch):
    build = Build(monkeypatch)
    with build.console:
        build_begins(SimpleNamespace(**vars(PIPELINE), models=SimpleNamespace(meter=build.meter)))
        yield build


def test_a_stage_run_has_the_time_left_at_the_pace_of_this_build(build: Build) -> None:
    first, second = build.lines((0, "read:a", 1))  # from an earlier build, whose pace is not known
    assert "build" in first and "1 of 3" in first
    assert "8 read:a" in second and "25%" in second and "left" not in second
    assert "75%" in (line := build.lines((60, "read:a", 2), (60, "read:a", 3))[1]) and "0:01:00 left" in line


def test_runs_side_by_side_have_a_bar_each_and_finished_ones_none(build: Build) -> None:
    lines = build.lines((0, "read:a", 0), (0, "read:b", 0), (10, "read:a", 1), (10, "read:b", 1))
    assert ["0:00:30 left" in lines[1], "0:01:00 left" in lines[2]] == [True, True]
    lines = build.lines((10, "read:a", 4))
    assert len(lines) == 2 and "2 of 3" in lines[0] and "read:b" in lines[1]


def test_a_build_in_another_thread_is_not_shown(build: Build) -> None:
    with ThreadPoolExecutor(1) as threads:
        threads.submit(shards_done, 8, "read:a", 1, 4).result()
    assert len(build.lines()) == 1


@pytest.mark.parametrize("work", ["a job", "a build", "a command"])
def test_whoever_waits_at_a_pipe_hears_what_is_being_done(work: str, monkeypatch) -> None:
    heard, text = (
        StringIO(),
        {"a job": "report: 0:00; figures 25%", "a build": "0:00: 8 read:a", "a command": "x: 0:00"},
    )
    monkeypatch.setattr(sys, "stderr", heard)
    monkeypatch.setattr(terminal, "console", lambda *_, **__: Console(file=StringIO()))
    monkeypatch.setattr(common, "WAIT_SECONDS", (0.05, 0.01))
    with progress.working("report", quiet=True):
        time.sleep(0.1)
    with progress.working("report"):
        common.note("step 1 of 3")  # who has heard something needs no other line
        time.sleep(0.1)
    assert not heard.getvalue()
    if work == "a job":
        with progress.working("report"):
            common.advance("figures", 1, 4)
            until(lambda: text[work] in heard.getvalue())
    elif work == "a build":
        with progress.BuildConsole() as console:
            build_begins(SimpleNamespace(**vars(PIPELINE), models=SimpleNamespace(meter=Meter())))
            console.shards(8, "read:a", 1, 4)
            until(lambda: text[work] in heard.getvalue())
    else:
        monkeypatch.setattr(cli, "assembled", lambda command: lambda _: until(lambda: text[work] in heard.getvalue()))
        cli.main(["x"])

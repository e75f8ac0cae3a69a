"""Ctrl-C and a closed terminal, as the terminal sends them: to the command and everything it started; SIGTERM, to the command."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from quit.stopping import GRACE, LINE
from quit.workspace import Workspace
from tests.conftest import ROOT, run_quit

pytestmark = pytest.mark.slow


def stop(
    folder: Path, home: Path, *arguments: str, until: str = "", after: float = 0.0, by: int = signal.SIGINT
) -> tuple[int, str, str, float]:
    """Run a command, stop it when stderr says ``until`` and ``after`` seconds have passed: code, stdout, stderr, seconds to the end.

    The end is that of stdout, which every process that the command has started holds too.
    """
    err = folder / "err"
    with err.open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "quit.cli", *arguments],
            stdout=subprocess.PIPE,
            text=True,
            stderr=errors,
            cwd=ROOT,
            env={**os.environ, "PREFECT_HOME": str(home)},
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler) and None,
        )
    deadline = time.monotonic() + 300
    while until not in err.read_text() and time.monotonic() < deadline:
        assert process.poll() is None, err.read_text()
        time.sleep(0.05)
    time.sleep(after)
    if process.poll() == 0:
        pytest.skip("the command was done before it could be stopped")
    began = time.monotonic()
    (os.kill if by == signal.SIGTERM else os.killpg)(process.pid, by)
    out, _ = process.communicate(timeout=120)
    return process.returncode, out, err.read_text(), time.monotonic() - began


def check(code: int, out: str, err: str, seconds: float, by: int = signal.SIGINT) -> None:
    assert code == 128 + by, err
    assert err.endswith(LINE + "\n") and err.count(LINE) == 1 and "Traceback" not in err, err
    assert out == "" and seconds < GRACE + 10  # other work may hold the machine


def test_a_build_stops_within_seconds_and_goes_on_afterwards(
    tmp_path: Path, small_source: Path, prefect_home: Path, built: Path
) -> None:
    workspace = tmp_path / "W"
    arguments = ("build", "-w", str(workspace), "--source", f"jsonl:{small_source}", "--shards", "1")
    for by, until in ((signal.SIGTERM, "1 collect"), (signal.SIGINT, "5 probe")):
        check(*stop(tmp_path, prefect_home, *arguments, until=until, by=by), by)
    again = run_quit(*arguments, home=prefect_home)
    assert again.returncode == 0, again.stderr
    assert "collect" not in again.stderr and "10 label" in again.stderr  # what was done stayed done
    assert Workspace.open(workspace).read("labels").equals(Workspace.open(built).read("labels"))


@pytest.mark.parametrize("command", ["export", "report", "release"])
def test_other_commands_stop_and_leave_nothing_half_made(
    command: str, tmp_path: Path, built: Path, prefect_home: Path
) -> None:
    arguments = {
        "export": ("export", "-w", str(built), "-f", "beir,trec,mteb,tevatron", "--out", str(tmp_path / "made")),
        "report": ("report", "-w", str(built), "--out", str(tmp_path / "made")),
        "release": ("release", "create", "-w", str(built), "--name", "v1", "--out", str(tmp_path / "made")),
    }[command]
    check(*stop(tmp_path, prefect_home, *arguments, after=1.2))
    left = {path.name for path in tmp_path.iterdir()} - {"err", "made"}
    assert not left
    assert not (tmp_path / "made").exists() or not any(
        path.name.startswith(".") for path in (tmp_path / "made").iterdir()
    )

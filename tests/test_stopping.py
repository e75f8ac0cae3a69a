"""Ctrl-C, as the terminal sends it: to the command and everything it started."""

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


def stop(folder: Path, home: Path, *arguments: str, until: str = "", after: float = 0.0) -> tuple[int, str, str, float]:
    """Run a command, press Ctrl-C when stderr says ``until`` and ``after`` seconds have passed: code, stdout, stderr, seconds to the end."""
    out, err = folder / "out", folder / "err"
    with out.open("w") as to, err.open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "quit.cli", *arguments],
            stdout=to,
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
    os.killpg(process.pid, signal.SIGINT)
    code = process.wait(120)
    return code, out.read_text(), err.read_text(), time.monotonic() - began


def check(code: int, out: str, err: str, seconds: float) -> None:
    assert code == 130, err
    assert err.endswith(LINE + "\n") and err.count(LINE) == 1 and "Traceback" not in err, err
    assert out == "" and seconds < GRACE + 10  # other work may hold the machine


def test_a_build_stops_within_seconds_and_goes_on_afterwards(
    tmp_path: Path, small_source: Path, prefect_home: Path, built: Path
) -> None:
    workspace = tmp_path / "W"
    arguments = ("build", "-w", str(workspace), "--source", f"jsonl:{small_source}", "--shards", "1")
    check(*stop(tmp_path, prefect_home, *arguments, until="5 probe"))
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
    left = {path.name for path in tmp_path.iterdir()} - {"out", "err", "made"}
    assert not left
    assert not (tmp_path / "made").exists() or not any(
        path.name.startswith(".") for path in (tmp_path / "made").iterdir()
    )

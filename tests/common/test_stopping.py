"""Ctrl-C and a closed terminal, as the terminal sends them to the command and its children; SIGTERM."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from quit.common.stopping import LINE, STOP_SECONDS
from quit.engine.workspace import Workspace
from tests.paths import FEW, ROOT
from tests.running import QUIT, call_quit, paused, run_process, until

pytestmark = pytest.mark.slow


def stop(folder: Path, command: Sequence[str], is_time: Callable[[], bool], by: int) -> None:
    """Run a command, stop it when it is time, and look at its code and at what it says.

    The end is that of stdout, which every process that the command has started holds too.
    """
    with (folder / "err").open("w") as errors:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, stderr=errors, cwd=ROOT,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler) and None,
        )  # fmt: skip
    until(is_time, process)
    (os.kill if by == signal.SIGTERM else os.killpg)(process.pid, by)
    out, _ = process.communicate(timeout=STOP_SECONDS + 60)  # other work may hold the machine
    err = (folder / "err").read_text()
    assert (process.returncode, out) == (128 + by, ""), err
    assert err.endswith(LINE + "\n") and err.count(LINE) == 1 and "Traceback" not in err, err


def test_a_build_stops_within_seconds_and_goes_on_afterwards(tmp_path, few_source, few_built):
    workspace = tmp_path / "W"
    arguments = ("build", "-w", str(workspace), "--source", f"jsonl:{few_source}", "-p", str(FEW), "--shards", "3")
    messages = tmp_path / "err"
    for by, line in ((signal.SIGTERM, "1 collect"), (signal.SIGINT, "2 filter")):
        messages.unlink(missing_ok=True)
        stop(tmp_path, [*QUIT, *arguments], lambda line=line: line in messages.read_text(), by)
    again = call_quit(*arguments)
    assert "collect" not in again.err and "10 label" in again.err  # what was done stayed done
    assert Workspace.open(workspace).read("labels").equals(Workspace.open(few_built).read("labels"))


@pytest.mark.parametrize(
    ("command", "place"),
    [
        (("export", "-f", "trec"), ("quit.export.files", "put_in_place")),
        (("report",), ("quit.report.page", "write")),
        (("release", "create", "--name", "v1"), ("quit.release.freezing", "write_json")),
    ],
)
def test_other_commands_stop_and_leave_nothing_half_made(command, place, tmp_path, built) -> None:
    marker = tmp_path / "there"
    arguments = (*command, "-w", str(built), "--out", str(tmp_path / "out"))
    stop(tmp_path, paused(*place, marker, *arguments), marker.exists, signal.SIGINT)
    assert {path.name for path in tmp_path.iterdir()} <= {"out", "err", "there"}
    assert not list((tmp_path / "out").glob("*"))


def test_what_is_registered_for_the_end_is_done_before_a_process_ends_with_its_code() -> None:
    program = "import atexit; from quit.common.stopping import end_with; atexit.register(print, 'done'); end_with(3)"
    assert run_process(sys.executable, "-c", program, code=None) == (3, "done\n", "")

"""Processes that end with the one that started them. A pipe that all of them hold says when the last is gone."""

import signal
import subprocess
import sys

import pytest

from quit.common.children import SupervisedProcess
from tests.paths import ROOT

pytestmark = pytest.mark.slow
ENDLESS = "print('up', flush=True); import time; time.sleep(600)"
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + ENDLESS
NESTED = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {ENDLESS!r}])"
REACHED = "import signal; signal.signal(signal.SIGHUP, signal.SIG_DFL)\n"
"""The tests may run under nohup; what they start would ignore SIGHUP too."""
PARENT = (
    "import sys, time; from quit.common.children import SupervisedProcess; "
    "SupervisedProcess([sys.executable, '-c', {child!r}], grace={grace}); time.sleep(600)"
)


@pytest.mark.parametrize("ended_by", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize(
    ("child", "grace"),
    [(ENDLESS, 600.0), (DEAF, 0.1), (NESTED, 600.0)],
    ids=["obeys", "ignores SIGTERM", "has a child"],
)
def test_a_child_ends_with_its_parent_whatever_ended_that(ended_by: signal.Signals, child: str, grace: float) -> None:
    code = PARENT.format(child=child, grace=grace)
    parent = subprocess.Popen([sys.executable, "-c", REACHED + code], stdout=subprocess.PIPE, cwd=ROOT)
    assert parent.stdout and parent.stdout.readline() == b"up\n"
    parent.send_signal(ended_by)
    assert parent.communicate(timeout=60) == (b"", None)  # the end of the pipe: parent, guard and child are gone


def test_it_is_a_process_like_any_other() -> None:
    assert SupervisedProcess([sys.executable, "-c", "raise SystemExit(3)"]).wait(60) == 3
    for end, code in ((SupervisedProcess.terminate, 128 + signal.SIGTERM), (SupervisedProcess.kill, -signal.SIGKILL)):
        child = SupervisedProcess([sys.executable, "-c", ENDLESS], stdout=subprocess.PIPE)
        assert child.stdout and child.stdout.readline() == b"up\n"
        end(child)
        assert child.communicate(timeout=60) == (b"", None) and child.returncode == code
    lost = SupervisedProcess(["no-such-program"], stderr=subprocess.PIPE)
    assert b"no-such-program cannot be started: No such file" in lost.communicate(timeout=60)[1]
    assert lost.returncode == 127

"""How far the stages of a workspace are, against its files."""

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from quit.engine.workspace import Workspace
from quit.status.stages import lock_holder, status


@pytest.mark.slow
def test_a_stage_that_was_killed_is_counted_by_its_parts(workspace: Workspace) -> None:
    folder, _ = workspace.current()["judge"]
    for name in ("verdicts", "second_verdicts", "rejects"):
        if (folder / name).is_dir():
            [part] = (folder / name).iterdir()
            for index in (0, 2):
                shutil.copy(part, folder / name / f"part-{index:05d}-of-00005.parquet")
            part.unlink()
    verdicts = folder / "verdicts"
    shutil.copy(verdicts / "part-00000-of-00005.parquet", verdicts / "part-00001-of-00005.parquet")
    (folder / "manifest.json").unlink()
    rows = {one.run: one for one in status(workspace)}
    # The third part has no second table yet where the stage has two: it is not done.
    assert (rows["judge"].state, rows["judge"].shards_done, rows["judge"].shards) == ("partial", 2, 5)
    assert rows["split"].state == "complete"


def test_a_lock_of_a_process_that_is_gone_is_no_lock(tmp_path: Path) -> None:
    workspace = Workspace.create(tmp_path / "W")
    assert lock_holder(workspace) is None
    with workspace.lock(1):
        held = lock_holder(workspace)
        assert held and held["pid"] == os.getpid()
    assert lock_holder(workspace) is None
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    left = {"pid": process.pid, "host": socket.gethostname(), "since": "then"}
    (workspace.path / "lock.json").write_text(json.dumps(left))
    assert lock_holder(workspace) is None
    (workspace.path / "lock.json").write_text(json.dumps({**left, "host": "elsewhere"}))
    assert lock_holder(workspace) is not None  # nobody here can know

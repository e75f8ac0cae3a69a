"""How far the stages of a workspace are, against its files."""

import shutil

import pytest

from quit.engine.workspace import Workspace
from quit.status.stages import status


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

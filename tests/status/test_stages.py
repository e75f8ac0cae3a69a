"""How far the stages of a workspace are, against its files."""

from pathlib import Path

from quit.status.stages import status
from tests.report import tiny


def test_a_stage_that_was_killed_is_counted_by_its_parts(tmp_path: Path) -> None:
    """Of three parts the second has no second table yet, so it is not done."""
    workspace = tiny.workspace(tmp_path / "W", shards=3)
    folder, _ = workspace.current()["filter"]
    (folder / "manifest.json").unlink()
    (folder / "leak_findings" / "part-00001-of-00003.parquet").unlink()
    rows = {one.run: one for one in status(workspace)}
    assert (rows["filter"].state, rows["filter"].shards_done, rows["filter"].shards) == ("partial", 2, 3)
    assert rows["split"].state == "complete"

"""How far the stages of a workspace are, against its files."""

from pathlib import Path
from types import SimpleNamespace

from quit.stages.order import STAGES
from quit.status.stages import stages_table, status
from tests.report import tiny


def test_a_stage_that_was_killed_is_counted_by_its_parts(tmp_path: Path) -> None:
    """Of three parts the second has no second table yet, so it is not done."""
    workspace = tiny.workspace(tmp_path / "W", shards=3)
    folder, _ = workspace.current()["filter"]
    (folder / "leak_findings" / "part-00001-of-00003.parquet").unlink()
    for _ in ("its manifest is there, as where somebody deleted a table", "it is not"):
        rows = {one.run: one for one in status(workspace)}
        assert (rows["filter"].state, rows["filter"].shards_done, rows["filter"].shards) == ("partial", 2, 3)
        assert rows["split"].state == "complete" and rows["split"].rows and not rows["filter"].rows
        (folder / "manifest.json").unlink(missing_ok=True)


def test_tables_that_the_next_build_replaces_are_outdated(tmp_path: Path) -> None:
    """As after an override that waits: the filter is planned anew, and all that rests on it."""
    workspace = tiny.workspace(tmp_path / "W")
    runs = [SimpleNamespace(stage=run, key=run.name) for run in STAGES[:3]]
    planned = SimpleNamespace(runs=runs, stage_run=str, is_current=lambda key: key == "collect")
    rows = status(workspace, planned)
    assert [(row.run, row.state) for row in rows] == [
        ("collect", "complete"), ("filter", "outdated"), ("rank", "outdated"),
    ]  # fmt: skip
    assert rows[1].rows == status(workspace)[1].rows and rows[1].rows


def test_readers_that_are_as_far_share_a_line_and_nothing_is_said_twice(tmp_path: Path) -> None:
    rows = tiny.rows()
    rows["answers/three"] = [{**row, "reader": "three"} for row in rows["answers/two"]][1:]  # an answer fewer
    workspace = tiny.workspace(tmp_path / "W", rows)
    lines = {stage: rest for stage, *rest in stages_table(workspace).rows}
    pairs = ({(row["question_id"], row["answer"]) for row in rows[f"answers/{name}"]} for name in ("one", "two"))
    low, high = sorted(map(len, pairs))
    assert lines[" 8 read (2 readers)"] == ["complete", f"12 answers, {low} to {high} distinct answers each", ""]
    assert lines[" 8 read:three"][1].startswith("11 answers, ")
    assert lines[" 2 filter"][1:] == ["6 usable hints, 1 leak finding in 1 hint", "1 question: answer leak"]
    labels, update = lines["10 label"][1], lines["11 update"][1]
    assert labels.startswith("12 labels, ") and update == "nothing new"

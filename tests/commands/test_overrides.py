"""``quit override import`` as it is typed: all of a file, or none of it."""

from pathlib import Path

from tests.report import tiny
from tests.rows import write_lines


def test_a_file_is_taken_whole_or_not_at_all(call, tmp_path: Path) -> None:
    workspace = tiny.workspace(tmp_path / "W").path
    decision = {"decision": "leak", "by": "ada", "reason": "It is the answer."}
    path = tmp_path / "decisions.jsonl"
    write_lines(path, ({"hint_id": hint, **decision} for hint in ("q1-h00", "q2-h01")))
    rows = call("override", "import", path, "-w", workspace, "--json").json()
    assert [(row["hint_id"], row["by"]) for row in rows] == [("q1-h00", "ada"), ("q2-h01", "ada")]
    assert "in force already: nothing was written" in call("override", "import", path, "-w", workspace).out
    write_lines(path, [{"hint_id": "q3-h00", **decision}, {"hint_id": "q3-h01", "decision": "x"}])
    failed = call("override", "import", path, "-w", workspace)
    assert failed.code == 3 and "line 2" in failed.err and failed.err.count("\n") == 1
    assert len(call("override", "list", "-w", workspace, "--json").json()) == 2

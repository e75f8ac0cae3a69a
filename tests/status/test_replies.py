"""Counts of what readers replied."""

import json
import shutil
from pathlib import Path

from quit.status.replies import reply_counts
from tests.report import tiny


def test_patterns_tell_who_was_asked_and_who_is_right(tmp_path: Path) -> None:
    """Reader one is right on 7 of 12 passages, two never; two was not asked about one that is answered."""
    rows = tiny.rows()
    [passage] = [row for row in rows["answers/two"] if (row["question_id"], row["permutation"]) == ("q3", "01")]
    passage["asked"] = False
    workspace = tiny.workspace(tmp_path / "W", rows, shards=2)
    by_hints, patterns = reply_counts(workspace, ["one", "two"])
    assert patterns == {(0b11, 0b01): 6, (0b01, 0b01): 1, (0b11, 0): 5}
    rows = [(reader, hints, counts.passages, counts.no_answer) for reader, hints, counts in by_hints]
    assert rows == [("one", 1, 6, 0), ("one", 2, 6, 0), ("two", 1, 6, 6), ("two", 2, 5, 5)]
    assert reply_counts(workspace, ["two"])[1] == {(1, 0): 11, (0, 0): 1}


def test_counts_follow_tables_that_are_made_anew_under_the_same_fingerprint(tmp_path: Path) -> None:
    """As when a language model is asked again."""
    rows = tiny.rows()
    workspace = tiny.workspace(tmp_path / "W", rows)
    before = reply_counts(workspace)
    assert reply_counts(workspace) == before and (tmp_path / "W" / "replies.json").is_file()
    counts = json.loads((tmp_path / "W/replies.json").read_text())
    for row in counts["by_hints"]:
        row[-1].pop()  # an older program counted less
    (tmp_path / "W/replies.json").write_text(json.dumps(counts))
    assert reply_counts(workspace) == before
    for row in rows["answers/two"]:
        row["asked"] = False
    other = tiny.workspace(tmp_path / "other", rows)
    folder, _ = workspace.current()["read:two"]
    shutil.copytree(other.current()["read:two"][0], folder, dirs_exist_ok=True)
    assert reply_counts(workspace) == reply_counts(other) != before

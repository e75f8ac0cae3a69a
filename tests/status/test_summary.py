"""Counts of a workspace: what a build prints and its flow's summary shows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from quit.common.ranges import WHOLE
from quit.stages.answers import number_answers
from quit.status.summary import cut_replies, markdown_summary, readers_table
from tests.report import tiny


def test_replies_that_ran_into_the_token_limit_are_counted_and_said(tmp_path: Path) -> None:
    """Of reader one's twelve replies two were cut, of reader two's none."""
    workspace = tiny.workspace(tmp_path / "W")
    folder, _ = workspace.current()["read:one"]
    rows = workspace.read("answers", runs=["read:one"]).drop_columns(["number", "ended", "asked"])
    ended = pa.array(["length", "stop", "length", *["stop"] * 9])
    replies = rows.append_column("answer", pa.array(["Nile"] * 12)).append_column("ended", ended)
    workspace.discard(folder)
    workspace.write_part(folder, WHOLE, number_answers(replies))
    workspace.finish(folder, ["answers", "distinct_answers"], 1, {"stage": "read"})
    readers = readers_table(workspace)
    assert [(name, passages, cut) for name, passages, _, _, cut in readers] == [("one", 12, 2), ("two", 12, 0)]
    [line] = cut_replies(readers)
    assert line.startswith("one: 17% of its replies were cut") and line in markdown_summary(workspace)


def test_a_tenth_of_cut_replies_is_not_worth_a_line() -> None:
    assert cut_replies([("a", 10, 0, 0, 1), ("b", 10, 0, 0, 0)]) == []

"""Counts of a workspace: what a build prints and its flow's summary shows."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from quit.common.ranges import WHOLE
from quit.engine.workspace import Workspace
from quit.stages.labelling.answers import number_answers
from quit.status.replies import Replies, cut_notes, readers_table
from quit.status.summary import markdown_summary
from tests.report import tiny
from tests.running import call_quit


def _workspace(path: Path, raw: Sequence[str], ended: Sequence[str]) -> Workspace:
    """Return a workspace where reader one's first replies, which became NO ANSWER, were these, and ended like this."""
    workspace = tiny.workspace(path)
    folder, _ = workspace.current()["read:one"]
    rows = workspace.read("answers", runs=["read:one"]).drop_columns(["number", "ended", "asked"])
    rest = ["Nile"] * (len(rows) - len(raw))
    replies = rows.append_column("answer", pa.array([*["NO ANSWER"] * len(raw), *rest]))
    replies = replies.append_column("raw", pa.array([*raw, *rest]))
    replies = replies.append_column("ended", pa.array([*ended, *["stop"] * len(rest)]))
    workspace.discard(folder)
    workspace.write_part(folder, WHOLE, number_answers(replies))
    workspace.finish(folder, ["answers", "distinct_answers"], 1, {"stage": "read"})
    return workspace


@pytest.mark.parametrize(
    ("raw", "ended", "column"),
    [("", "length", "cut"), ("The Nile.", "stop", "sentences"), ("", "content_filter", "filtered")],
)
def test_status_shows_the_readers_where_replies_were_lost_for_any_one_reason(tmp_path, raw, ended, column) -> None:
    assert "Readers" not in call_quit("status", "-w", str(_workspace(tmp_path / "none", [], []))).out
    out = call_quit("status", "-w", str(_workspace(tmp_path / "one", [raw], [ended]))).out
    assert "Readers" in out and column in out


def test_replies_that_ran_into_the_token_limit_and_sentences_are_counted_and_said(tmp_path: Path) -> None:
    """Of reader one's twelve replies two were cut and three are sentences; a model that says NO ANSWER writes none."""
    raw = ["It is the", "It is the Nile.", "It is the", "NO_ANSWER", "(no  answer", "..."]
    workspace = _workspace(tmp_path / "W", raw, ["length", "stop", "length", "stop", "stop", "content_filter"])
    readers = readers_table(workspace)
    correct = readers["one"].correct
    assert readers == {"one": (12, 6, correct, 2, 3, 1), "two": (12, 12, 0, 0, 0, 0)}
    few = {"a": Replies(10, 0, 0, 1, 0, 0), "b": Replies(10, 0, 0, 0, 10, 0)}
    assert cut_notes(few) == []  # a tenth is not worth a line
    [line] = cut_notes(readers)
    assert line.startswith("one: 17% of its replies were cut at the token limit, and 25% of its replies are sentences")
    summary = markdown_summary(workspace)
    assert line in summary and "| one | 12 | 50.0% | " in summary and " | 16.7% | 25.0% | 8.3% |" in summary
    status = call_quit("status", "-w", str(workspace))
    assert line in status.out

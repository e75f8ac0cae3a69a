"""Counts of a workspace: what a build prints and its flow's summary shows."""

import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from quit.common.ids import content_hash
from quit.common.ranges import WHOLE
from quit.engine.workspace import Workspace
from quit.stages.labelling.answers import number_answers
from quit.status.replies import Replies, cut_notes, readers_table
from quit.status.summary import beyond_limits, funnel, leakage_losses, markdown_summary, stages_table
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


@pytest.mark.parametrize(
    ("method", "model", "says"),
    [
        ("full", "embedded-2@x", "by method full with the embedded equivalence model."),
        ("bem", "embedded-2@x", "by method bem with the embedded equivalence model in BEM's place."),
        ("full", "bem-1:org/bem@abc", "by method full with BEM."),
        ("bem", "bem-1:org/bem@abc", "by method bem with BEM; the paper: 2.5%."),
    ],
)
def test_the_papers_losses_stand_beside_those_of_bem_by_its_method_alone(tmp_path, method, model, says) -> None:
    workspace = tiny.workspace(tmp_path / "W")
    folder, manifest = workspace.current()["filter"]
    settings = {"leakage": {"method": method}}
    facts = manifest | {"settings": settings, "models": ["rules", model, "encoder"]}
    facts["checksum"] = content_hash(facts)
    (folder / "manifest.json").write_text(json.dumps(facts))
    questions = len(workspace.read("questions"))
    lost = sum(row["kind"] == "question" and row["stage"] == "filter" for row in workspace.read("rejects").to_pylist())
    losses = leakage_losses(Workspace.open(workspace.path))
    assert losses == f"Answer leakage: {lost} of {questions} questions left out ({lost / questions:.1%}), {says}"
    assert losses in markdown_summary(Workspace.open(workspace.path))


def test_rows_with_a_note_are_counted_in_one_line(tmp_path: Path) -> None:
    workspace = tiny.workspace(tmp_path / "W")
    assert beyond_limits(workspace) is None and "beyond" not in markdown_summary(workspace)
    for run, table in (("rank", "ranked_hints"), ("judge", "verdicts")):
        folder, manifest = workspace.current()[run]
        tables = {name: workspace.read(name, runs=[run]) for name in manifest["tables"]}
        bare = tables[table].drop_columns(["note"])
        notes = pa.array(["not English", "answer empty", *[None] * (len(bare) - 2)], pa.string())
        workspace.discard(folder)
        workspace.write_part(folder, WHOLE, tables | {table: bare.append_column("note", notes)})
        workspace.finish(folder, list(tables), 1, {"stage": run})
    line_of_notes = beyond_limits(Workspace.open(workspace.path))
    assert (
        line_of_notes
        == "Texts beyond the limits of embedded models (column note): 2 rows of ranked_hints, 2 rows of verdicts."
    )
    assert line_of_notes in markdown_summary(Workspace.open(workspace.path))


def test_the_funnel_names_each_reason_and_counts_the_limit_of_questions_last(tmp_path: Path) -> None:
    rows = tiny.rows()
    rows["rejects"] += [
        {"stage": "split", "kind": "question", "reason": "not_sampled", "detail": "", "question_id": "q5"},
        {"stage": "collect", "kind": "question", "reason": "beyond_questions", "detail": "", "question_id": "q6"},
    ]
    assert funnel(tiny.workspace(tmp_path / "W", rows)) == [
        ("in the sources", 6), ("after collect (too few hints)", 5), ("after collect (beyond questions)", 4),
        ("after filter (answer leak)", 3), ("after split (not sampled)", 2),
        ("in train", 1), ("in dev", 1), ("in test", 1),
    ]  # fmt: skip


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

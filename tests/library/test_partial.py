"""A workspace that was labelled partly, as its users meet it: exports, releases, filling in, reviews."""

import json
import shlex
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from quit.dataset.workspace import filling_in
from quit.engine.planning import last_build
from quit.engine.workspace import Workspace
from quit.review.apply import plan_update
from quit.review.store import ReviewStore
from quit.text.answers import answer_key
from tests.answers import answers_in
from tests.building import LABELERS, asked_of
from tests.comparing import files_of
from tests.running import call_quit
from tests.stages.labelling.test_verdicts import said

pytestmark = pytest.mark.slow
WAIVED = ("--waive", "human-coverage=a test", "--waive", "unjudged-answer=a test")


def test_filling_in_gives_the_bytes_of_a_full_run(exact: Path, full: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(exact, tmp_path / "W")
    command = shlex.split(filling_in(Workspace.open(folder)))
    assert command[0] == "quit"
    call_quit(*command[1:])
    for place, name in ((folder, "ours"), (full, "theirs")):
        call_quit("export", "-w", place, "-f", "release-json,huggingface", "--out", tmp_path / name)
    assert files_of(tmp_path / "ours") == files_of(tmp_path / "theirs")


def test_a_release_and_its_dataset_say_what_was_asked(exact: Path, full: Path, tmp_path: Path) -> None:
    """... and relevance formats, which hold labels alone, are those of a full build."""
    folder = shutil.copytree(exact, tmp_path / "W")
    call_quit("release", "create", "-w", folder, "--name", "v1", "--out", tmp_path / "v1", *WAIVED)
    gates = {row["gate"]: row["state"] for row in json.loads((tmp_path / "v1" / "release.json").read_text())["gates"]}
    assert gates["label-mismatch"] == gates["missing-passage"] == "passed"
    refusal = call_quit("export", "-w", tmp_path / "v1", "-f", "release-json", "--out", tmp_path / "x", code=3)
    assert "labels.partial=off" in refusal.err
    call_quit("export", "-w", tmp_path / "v1", "-f", "huggingface,trec", "--out", tmp_path / "x")
    parts = sorted((tmp_path / "x" / "huggingface" / "answers").glob("*.parquet"))
    answers = pa.concat_tables(pq.read_table(path) for path in parts)
    stored = Workspace.open(folder).read("answers")
    assert len(answers) == len(stored)
    assert sum(answers["asked"].to_pylist()) == sum(stored["asked"].to_pylist()) < len(stored)
    for row in answers.to_pylist():
        assert (row["answer"] is not None) is row["asked"] and (row["correct"] is not None) is row["asked"]
    assert "only about passages from which no earlier one answers" in (tmp_path / "x/huggingface/README.md").read_text()
    call_quit("export", "-w", full, "-f", "trec", "--out", tmp_path / "y")
    ours, theirs = (
        {name: data for name, data in files_of(tmp_path / place / "trec").items() if name != "manifest.json"}
        for place in ("x", "y")
    )
    assert ours == theirs


def _accepted(workspace: Workspace) -> tuple[str, str, str]:
    """Return question, key and form of the first labeler's accepted answer of a reviewed split from most passages."""
    with workspace.connect() as connection:
        row = connection.execute(
            "SELECT question_id, d.answer_key, any_value(d.answer) FROM answers JOIN distinct_answers d "
            "USING (question_id, reader, number) JOIN verdicts v USING (question_id, answer_key) "
            "JOIN splits USING (question_id) WHERE reader = ? AND v.correct AND split <> 'train' "
            "GROUP BY 1, 2 ORDER BY count(*) DESC, 1 LIMIT 1",
            [LABELERS[0]],
        ).fetchone()
    assert row is not None
    return row


def test_a_rejected_answer_is_asked_of_the_labelers_that_were_skipped(exact: Path, full: Path, tmp_path: Path) -> None:
    """... about exactly its passages. The labels are those of a full build with the same review, and withdrawing it
    leads back to the former tables."""
    ours = Workspace.open(shutil.copytree(exact, tmp_path / "ours"))
    theirs = Workspace.open(shutil.copytree(full, tmp_path / "theirs"))
    question, key, form = _accepted(ours)
    before, state = {name: asked_of(ours, name) for name in LABELERS}, ours.state
    answers = {key: False, "typed_a substitute": True}  # with no valid answer left, the question would leave
    review = [
        {**row, "answer": form if row.get("answer_key") == key else row.get("answer")}
        for row in said("ada", 1, question=question, **answers)
    ]
    lowered_counts = []
    stop_early = True
    for workspace in (ours, theirs):
        ReviewStore(workspace).append(review)
        if stop_early:  # as a kill would: the next update finishes it
            updated = last_build(workspace)
            assert plan_update(updated)
            run = updated.stage_run(f"read:{LABELERS[1]}")
            updated.run_shard(run, updated.pending(run)[0])
            updated.finish(run)
            stop_early = False
        output = call_quit("review", "apply", "-w", workspace.path, "--json").out
        lowered_counts.append(json.loads(output)["labels_down"])
    accepted = {
        (row["question_id"], row["permutation"])
        for row in answers_in(ours, [f"read:{LABELERS[0]}"])
        if row["question_id"] == question and answer_key(row["answer"]) == key
    }
    assert accepted and asked_of(ours, LABELERS[0]) == before[LABELERS[0]]
    assert asked_of(ours, LABELERS[1]) == before[LABELERS[1]] | accepted
    assert accepted <= asked_of(ours, LABELERS[2]) | asked_of(ours, LABELERS[1])
    assert asked_of(ours, LABELERS[2]) >= before[LABELERS[2]]
    assert ours.read("labels")["label"].equals(theirs.read("labels")["label"])
    assert ours.read("splits").equals(theirs.read("splits"))
    assert lowered_counts[0] > 0 and last_build(ours).up_to_date
    call_quit("review", "apply", "-w", ours.path, "--withdraw")
    assert ours.state == state and {name: asked_of(ours, name) for name in LABELERS} == before

"""The review flow on a real server, as a user runs it."""

import json
import re
from pathlib import Path

import pytest

from annotation.tasks import alias
from quit.dataset.release_tables import export_tables_of_release
from quit.dataset.workspace import export_tables_of
from quit.engine.planning import held_last_build
from quit.engine.workspace import Workspace
from quit.review.store import ReviewStore
from tests.comparing import files_of
from tests.conftest import call_quit
from tests.label_studio import annotate, page_result, wrong_answers

pytestmark = pytest.mark.slow


def test_push_sync_and_apply_in_one_flow(review_workspace, live, review_settings, quit_review, prefect_home) -> None:
    """... and the difference between the releases before and after it is what the person did."""
    assert _release(review_workspace, "v1").returncode == 0
    told = quit_review("run", "-w", str(review_workspace), "--url", live.account.url)
    assert told.returncode == 0, told.stderr
    assert "0 annotations of 0 questions" in told.stdout
    store = ReviewStore(Workspace.open(review_workspace))
    server = live.client(review_settings)
    task = next(server.tasks(store.project["id"], ["id", "meta", "data"]))
    question = task.meta["key"]
    # The labels that should rise, counted from the readers' answers: no labeler was right on the passage before.
    before = store.workspace.read("labels", runs=["label"]).to_pylist()
    low = {row["permutation"] for row in before if row["question_id"] == question and row["label"] == 1}
    key, passages = max(wrong_answers(store.workspace, question).items(), key=lambda item: len(low & item[1]))
    assert low & passages
    wrong = next(row for row in task.data["answers"] if row["key"] == key)
    assert wrong["alias"] == alias(question, key)
    annotate(server, task.id, page_result(question, key, shown=None))
    told = quit_review("run", "-w", str(review_workspace), "--url", live.account.url)
    assert told.returncode == 0, told.stderr
    assert "1 of 13 tasks done" in told.stdout and "1 annotation of 1 question by 1 person" in told.stdout
    assert re.search(rf"{live.account.email} +1\b", told.stdout)
    opened = Workspace.open(review_workspace)
    assert "update" in opened.state and len(opened.read("changes")) > 0

    refused = _release(review_workspace, "v1")
    assert refused.returncode == 3 and "with other content" in refused.stderr
    assert _release(review_workspace, "v2").returncode == 0
    releases = [str(review_workspace / "releases" / name) for name in ("v1", "v2")]
    email = live.account.email.encode()
    assert all(email not in data for data in files_of(Path(releases[1])).values())
    verified = [export_tables_of_release(path).provenance.get("verification") for path in releases]
    with held_last_build(review_workspace) as pipeline:
        assert export_tables_of(opened, pipeline).provenance["verification"] == verified[1]
    assert verified[0] is None and verified[1]["annotators"] == verified[1]["annotations"] == 1
    [kind] = verified[1]["kinds"]
    judged = [row for row in task.data["answers"] if not row["gold"]]  # gold answers were left unticked
    assert (kind["blind"], kind["seconds"], kind["answers"]) == (False, 3.0, len(judged))
    told = call_quit("release", "diff", *releases, "--json")
    assert told.returncode == 0, told.stderr
    found = json.loads(told.stdout)
    assert [(row["question_id"], row["up"]) for row in found["labels"]] == [(question, len(low & passages))]
    assert {row["question_id"] for row in found["answers_added"]} <= {question}
    assert (found["before"]["reviews"], found["after"]["reviews"]) == (0, 1)
    assert not (found["added"] or found["removed"] or found["moved"])
    text = call_quit("release", "diff", *releases).stdout
    assert "## v2 (after v1)" in text and question in text


def _release(workspace: Path, name: str):
    return call_quit("release", "create", "-w", str(workspace), "--name", name)

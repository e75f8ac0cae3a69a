"""The review flow on a real server, as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from annotation.tasks import alias
from quit.evaluate.normalize import normalize_answer
from quit.review.store import ReviewStore
from quit.workspace import Workspace
from tests.conftest import run_quit

pytestmark = pytest.mark.slow
LABELERS = ("minilm-vector", "minilm-late", "minilm-evidence")


def test_push_sync_and_apply_in_one_flow(
    review_workspace, live, review_settings, quit_review, prefect_home: Path
) -> None:
    """... and the difference between the releases before and after it is what the person did."""
    assert _release(review_workspace, "v1", prefect_home).returncode == 0
    told = quit_review("run", "-w", str(review_workspace), "--url", live.account.url)
    assert told.returncode == 0, told.stderr
    assert "0 annotations of 0 questions" in told.stdout
    store = ReviewStore(Workspace.open(review_workspace))
    server = live.client(review_settings)
    task = next(server.tasks(store.project["id"], ["id", "meta", "data"]))
    wrong = next(row for row in task["data"]["answers"] if row["alias"] not in task["data"]["ticked"]["1"])
    assert wrong["alias"] == alias(task["meta"]["key"], wrong["key"])
    result = [
        {"from_name": "correct", "to_name": "question", "type": "choices", "value": {"choices": [wrong["alias"]]}}
    ]
    server.request("POST", f"api/tasks/{task['id']}/annotations", body={"result": result})
    told = quit_review("run", "-w", str(review_workspace), "--url", live.account.url)
    assert told.returncode == 0, told.stderr
    assert "**1 of" in told.stdout and "1 annotations of 1 questions by 1 people" in told.stdout
    assert f"| {live.account.email} | 1 |" in told.stdout
    opened = Workspace.open(review_workspace)
    assert "update" in opened.state and len(opened.read("changes")) > 0

    assert _release(review_workspace, "v2", prefect_home).returncode == 0
    releases = [str(review_workspace / "releases" / name) for name in ("v1", "v2")]
    told = run_quit("release", "diff", *releases, "--json", home=prefect_home)
    assert told.returncode == 0, told.stderr
    found = json.loads(told.stdout)
    # The labels that should rise, counted from the readers' answers: no labeler was right on the passage before.
    question, before = task["meta"]["key"], opened.read("labels", runs=["label"]).to_pylist()
    low = {row["permutation"] for row in before if row["question_id"] == question and row["label"] == 1}
    gave = {
        row["permutation"]
        for row in opened.read("answers").to_pylist()
        if row["question_id"] == question
        and row["reader"] in LABELERS
        and normalize_answer(row["answer"]) == wrong["key"]
    }
    assert [(row["question_id"], row["up"]) for row in found["labels"]] == [(question, len(low & gave))][
        : len(low & gave)
    ]
    assert {row["question_id"] for row in found["answers_added"]} <= {question}
    assert (found["before"]["reviews"], found["after"]["reviews"]) == (0, 1)
    assert not (found["added"] or found["removed"] or found["moved"])
    text = run_quit("release", "diff", *releases, home=prefect_home).stdout
    assert "## v2 (after v1)" in text and (question in text or not found["labels"])


def _release(workspace: Path, name: str, home: Path):
    waive = ["--waive", "answer-in-passage=the review accepted whatever stood first"]
    return run_quit("release", "create", "-w", str(workspace), "--name", name, *waive, home=home)

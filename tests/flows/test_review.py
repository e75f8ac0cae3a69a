"""The review flow on a real server, as a user runs it."""

from __future__ import annotations

import pytest

from annotation.tasks import alias
from quit.review.store import ReviewStore
from quit.workspace import Workspace

pytestmark = pytest.mark.slow


def test_push_sync_and_apply_in_one_flow(review_workspace, live, review_settings, quit_review) -> None:
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

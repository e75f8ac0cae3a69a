"""The whole loop on a real server: push, two people annotate, pull, apply; every label is checked, and the difference
between the releases before and after it is what the people did."""

import json
import re
from collections.abc import Iterable
from typing import Any

import pytest

from quit.annotation.client import Server
from quit.annotation.tasks import NONE
from quit.commands.review import _pull
from quit.dataset.dataset import Dataset
from quit.dataset.workspace import dataset_of
from quit.engine.planning import locked_last_build
from quit.engine.workspace import Workspace
from quit.text.answers import answer_key
from tests.comparing import files_of
from tests.label_studio import annotate, page_result, wrong_answers
from tests.running import call_quit

pytestmark = pytest.mark.slow


def _labels(workspace: Workspace, runs: list[str] | None = None) -> dict[tuple[str, str], int]:
    rows = workspace.read("labels", runs=runs).to_pylist()
    return {(row["question_id"], row["permutation"]): row["label"] for row in rows}


def _annotate(server: Server, task: Any, accepted: Iterable[str], **more: list[str]) -> int:
    """Submit what the page would send with these normalised answers ticked."""
    result = page_result(task.meta["key"], *sorted(accepted), shown=task.meta["version"], **more)
    return annotate(server, task.id, result)


def test_the_loop_from_task_to_updated_labels(review_workspace, live, people, settings, quit_review, capsys) -> None:
    workspace = review_workspace
    call_quit("release", "create", "-w", workspace, "--name", "v1")
    assert "Nothing has been pushed yet" in quit_review("status", "-w", workspace)
    url, overrides = ("--url", live.account.url), ("--set", "review.overlap=2", "--set", "review.blind=0.5")
    push = json.loads(quit_review("push", "-w", workspace, *url, *overrides, "--json"))
    opened = Workspace.open(workspace)
    reviewed = {row["question_id"] for row in opened.read("splits").to_pylist() if row["split"] != "train"}
    assert push["new"] == len(reviewed) >= 8 and push["created"]
    progress = quit_review("status", "-w", workspace)
    assert f"0 of {len(reviewed)} tasks done, {len(reviewed)} open, as of the last push" in progress
    server = live.client(settings)
    project = push["project"]
    tasks = list(server.tasks(project, ["id", "meta", "data"]))
    assert {task.meta["key"] for task in tasks} == reviewed
    blind = {task.meta["key"] for task in tasks if task.data["blind"]}
    assert len(blind) == push["blind"] and 0 < len(blind) < len(reviewed)

    verdicts, questions = opened.read("verdicts", runs=["judge"]).to_pylist(), opened.read("questions").to_pylist()
    judge = {(row["question_id"], row["answer_key"]): bool(row["correct"]) for row in verdicts}
    gold = {row["question_id"]: {*map(answer_key, row["answers"])} for row in questions}
    keys = {task.meta["key"]: [row["key"] for row in task.data["answers"]] for task in tasks}
    ticked = {name: {key for key in keys[name] if judge.get((name, key), key in gold[name])} for name in keys}

    by_question = {task.meta["key"]: task for task in tasks}
    order = [task.meta["key"] for task in tasks]  # ids rise in the order of the queue
    first, second, third, fourth = order[:4]

    # Ada accepts an answer that labelers gave, says of the next question that none is correct, which leaves open what
    # she thinks of the gold answers, and adds an answer and a flag in the third.
    accepted_by_ada, passages = max(wrong_answers(opened, first).items(), key=lambda item: len(item[1]))
    ada = live.client(settings, people["ada@example.org"])
    _annotate(ada, by_question[first], ticked[first] | {accepted_by_ada})
    annotate(ada, by_question[second].id, page_result(second, NONE))
    _annotate(ada, by_question[third], ticked[third], missing=["A <b>quite</b> new name"], flags=["ambiguous"])

    # Ben agrees on the first, disagrees on the second, agrees on the third and flags the fourth.
    ben = live.client(settings, people["ben@example.org"])
    _annotate(ben, by_question[first], ticked[first] | {accepted_by_ada})
    _annotate(ben, by_question[second], ticked[second])
    _annotate(ben, by_question[third], ticked[third])
    _annotate(ben, by_question[fourth], ticked[fourth], flags=["leak"])
    for question in order[4 : len(order) // 2]:
        _annotate(ben, by_question[question], ticked[question])

    pull = json.loads(quit_review("pull", "-w", workspace, *url, "--json"))
    assert pull["versions"] == 3 + len(order) // 2 and pull["unclear"] == 1
    [question] = pull["problems"]
    assert question.startswith(f"Ask ada@example.org about {second}: the expected answer") and "?task=" in question
    _annotate(ben, by_question[order[-1]], ticked[order[-1]])
    for said in ("pulled 1 annotation, 0 withdrawn", ""):  # as beside a server that runs
        _pull(opened, server)
        assert " ".join(capsys.readouterr().out.split()) == said
    reviews = opened.read("reviews").to_pylist()
    mine = [row for row in reviews if row["annotator"] == "ada@example.org" and row["question_id"] == first]
    assert {row["answer_key"]: row["correct"] for row in mine if row["kind"] == "answer"} == {
        key: key in ticked[first] | {accepted_by_ada} for key in keys[first]
    }
    assert [row["lead_seconds"] for row in mine if row["kind"] == "annotation"] == [3.0]
    assert 0 < pull["verdicts"] < sum(row["correct"] is not None for row in reviews)
    assert {row["blind"] for row in mine} == {first in blind}
    status = json.loads(quit_review("status", "-w", workspace, "--json"))
    assert [row["question_id"] for row in status["unclear"]] == [second]

    report = json.loads(quit_review("apply", "-w", workspace, "--json"))
    # The second is a tie wherever the judge accepts more than the gold answers, and so is Ada's flag: the judge stands,
    # the queue has them.
    queue = json.loads(quit_review("status", "--disagreements", "-w", workspace, "--json"))
    ties = {(second, key) for key in ticked[second] - gold[second]}
    assert {(row["question_id"], row["key"]) for row in queue} == ties | {(third, "ambiguous")}
    assert report["open"] == len(queue)
    before, now = _labels(opened, ["label"]), _labels(opened)
    expected = before | {(first, permutation): 2 for permutation in passages}
    # Only the question that Ben flagged goes: no hint shares a word with an answer that was accepted or added.
    assert report["questions_removed"] == {"flagged_leak": 1}
    gone = [row["question_id"] for row in opened.read("changes").to_pylist() if row["change"] == "question_removed"]
    assert gone == [fourth]
    assert now == {passage: label for passage, label in expected.items() if passage[0] != fourth}
    changes = [row for row in opened.read("changes").to_pylist() if row["change"] == "label"]
    changed = {(row["question_id"], row["permutation"]): (row["before"], row["after"]) for row in changes}
    assert changed == {passage: (before[passage], label) for passage, label in now.items() if before[passage] != label}
    ids = {row["review_id"] for row in reviews if row["question_id"] == first}
    assert changes and all(row["question_id"] == first and set(row["reviews"]) == ids for row in changes)
    added = {row["answer"] for row in opened.read("changes").to_pylist() if row["change"] == "answer_added"}
    assert "A <b>quite</b> new name" in added

    text = quit_review("run", "-w", workspace, *url)  # nothing is new
    assert f"of {pull['versions'] - 2} questions by 2 people" in text
    assert re.search(r"ben@example.org +\d+\b", text)
    refusal = call_quit("release", "create", "-w", workspace, "--name", "v1", code=3)
    assert "with other content" in refusal.err
    call_quit("release", "create", "-w", workspace, "--name", "v2")
    releases = [workspace / "releases" / name for name in ("v1", "v2")]
    assert all(b"@example.org" not in data for data in files_of(releases[1]).values())
    verification = [Dataset.of_release(path).provenance.get("verification") for path in releases]
    with locked_last_build(workspace) as pipeline:
        assert dataset_of(pipeline).provenance["verification"] == verification[1]
    assert verification[0] is None and verification[1]["annotations"] == pull["versions"] + 1
    difference = call_quit("release", "diff", *releases, "--json").json()
    assert [(row["question_id"], row["up"]) for row in difference["labels"]] == [(first, len(changed))]
    assert [row["question_id"] for row in difference["removed"]] == [fourth]
    assert added <= {row["answer"] for row in difference["answers_added"]}
    assert not (difference["added"] or difference["moved"])

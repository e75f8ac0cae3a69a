"""The whole loop on a real server: push, two people annotate, pull, apply; every label is checked. The page itself:
test_page."""

from __future__ import annotations

import json

import pytest

from annotation.tasks import alias
from quit.engine.workspace import Workspace
from quit.evaluate.normalize import normalize_answer
from tests.label_studio import LABELERS, wrong_answers

pytestmark = pytest.mark.slow


def _expected_labels(workspace: Workspace, ruled: dict[str, dict[str, bool]]) -> dict[tuple[str, str], int]:
    """Labels worked out the slow way: passage by passage from the labelers' answers, the judge's verdicts and
    people's."""
    accepted = {
        (row["question_id"], row["answer_key"]): bool(row["correct"])
        for row in workspace.read("verdicts", runs=["judge"]).to_pylist()
    }
    for question, verdicts in ruled.items():
        accepted.update({(question, key): correct for key, correct in verdicts.items()})
    labels: dict[tuple[str, str], int] = {}
    for reader in LABELERS:
        for row in workspace.read("answers", runs=[f"read:{reader}"]).to_pylist():
            place = (row["question_id"], row["permutation"])
            right = accepted.get((row["question_id"], normalize_answer(row["answer"])), False)
            labels[place] = max(labels.get(place, 1), 2 if right else 1)
    return labels


def _labels(workspace: Workspace, runs: list[str] | None = None) -> dict[tuple[str, str], int]:
    rows = workspace.read("labels", runs=runs).to_pylist()
    return {(row["question_id"], row["permutation"]): row["label"] for row in rows}


def _annotate(server, task, accepted: set[str], **more: list[str]) -> int:
    """Submit through the API what the page would: ``accepted``: normalised answers."""
    question = task.meta["key"]
    entry = lambda name, kind, value: {"from_name": name, "to_name": "question", "type": kind, "value": value}  # noqa: E731
    result = [entry("shown", "textarea", {"text": [str(task.meta["version"])]})]
    if accepted:
        result.append(entry("correct", "choices", {"choices": [alias(question, key) for key in sorted(accepted)]}))
    if more.get("missing"):
        result.append(entry("missing", "textarea", {"text": more["missing"]}))
    if more.get("note"):
        result.append(entry("note", "textarea", {"text": more["note"]}))
    if more.get("flags"):
        result.append(entry("flags", "choices", {"choices": more["flags"]}))
    return server.ask(lambda studio: studio.annotations.create(task.id, result=result, lead_time=12.5)).id


def test_the_loop_from_task_to_updated_labels(review_workspace, live, people, review_settings, quit_review) -> None:
    workspace, settings = review_workspace, review_settings
    told = quit_review("push", "-w", str(workspace), "--url", live.account.url, "--set", "review.overlap=2", "--json")
    assert told.returncode == 0, told.stderr
    pushed = json.loads(told.stdout)
    opened = Workspace.open(workspace)
    questions = opened.read("splits").to_pylist()
    reviewed = {row["question_id"] for row in questions if row["split"] in ("dev", "test")}
    assert pushed["new"] == len(reviewed) >= 8 and pushed["created"]
    server = live.client(settings)
    project = pushed["project"]
    tasks = list(server.tasks(project, ["id", "meta", "data", "predictions"]))
    assert {task.meta["key"] for task in tasks} == reviewed

    judge = {
        (row["question_id"], row["answer_key"]): bool(row["correct"])
        for row in opened.read("verdicts", runs=["judge"]).to_pylist()
    }
    keys = {task.meta["key"]: {row["key"]: row["answer"] for row in task.data["answers"]} for task in tasks}
    gold = {
        row["question_id"]: {normalize_answer(text) for text in row["answers"]}
        for row in opened.read("questions").to_pylist()
    }
    ticked = {
        question: {key for key in found if judge.get((question, key), key in gold[question])}
        for question, found in keys.items()
    }
    # Every distinct answer that any reader gave stands in the task, and nothing else but gold answers.
    given: dict[str, set[str]] = {question: set(gold[question]) for question in reviewed}
    for row in opened.read("answers").to_pylist():
        if row["question_id"] in reviewed and row["answer"] != "NO ANSWER":
            given[row["question_id"]].add(normalize_answer(row["answer"]))
    assert {question: set(found) for question, found in keys.items()} == given

    by_question = {task.meta["key"]: task for task in tasks}
    order = [task.meta["key"] for task in tasks]  # ids rise in the order of the queue
    first, second, third, fourth = order[:4]

    # Ada accepts an answer that labelers gave, rejects all in the next question, adds an answer and a flag in the
    # third.
    accepted_by_ada = max(wrong_answers(opened, first).items(), key=lambda item: len(item[1]))[0]
    ada = live.client(settings, people["ada@example.org"])
    _annotate(ada, by_question[first], ticked[first] | {accepted_by_ada}, note=["seen on the page"])
    _annotate(ada, by_question[second], set())
    _annotate(ada, by_question[third], ticked[third], missing=["A <b>quite</b> new name"], flags=["ambiguous"])

    # Ben agrees on the first, disagrees on the second, agrees on the third and flags the fourth.
    ben = live.client(settings, people["ben@example.org"])
    _annotate(ben, by_question[first], ticked[first] | {accepted_by_ada})
    _annotate(ben, by_question[second], ticked[second])
    _annotate(ben, by_question[third], ticked[third])
    _annotate(ben, by_question[fourth], ticked[fourth], flags=["leak"])
    for question in order[4 : len(order) // 2]:
        _annotate(ben, by_question[question], ticked[question])

    told = quit_review("pull", "-w", str(workspace), "--url", live.account.url, "--json")
    assert told.returncode == 0, told.stderr
    pulled = json.loads(told.stdout)
    assert pulled["versions"] == 3 + len(order) // 2 and pulled["problems"] == []
    again = json.loads(quit_review("pull", "-w", str(workspace), "--url", live.account.url, "--json").stdout)
    assert again["versions"] == again["rows"] == 0
    reviews = opened.read("reviews").to_pylist()
    mine = [row for row in reviews if row["annotator"] == "ada@example.org" and row["question_id"] == first]
    assert {row["answer_key"]: row["correct"] for row in mine if row["kind"] == "answer"} == {
        key: key in ticked[first] | {accepted_by_ada} for key in keys[first]
    }
    assert [row["text"] for row in mine if row["kind"] == "note"] == ["seen on the page"]
    assert all(row["suggested"] == (row["answer_key"] in ticked[first]) for row in mine if row["kind"] == "answer")
    assert next(row for row in mine if row["kind"] == "annotation")["lead_seconds"] > 0

    told = quit_review("apply", "-w", str(workspace), "--json")
    assert told.returncode == 0, told.stderr
    report = json.loads(told.stdout)
    # The second is a tie wherever the judge had ticked something, and so is Ada's flag: the judge stands, the queue has
    # them.
    queue = json.loads(quit_review("disagreements", "-w", str(workspace), "--json").stdout)
    assert {(row["question_id"], row["key"]) for row in queue} == {(second, key) for key in ticked[second]} | {
        (third, "ambiguous")
    }
    assert report["open"] == len(queue)
    before, now = _labels(opened, ["label"]), _labels(opened)
    expected = _expected_labels(opened, {first: {accepted_by_ada: True}})
    # Only the question that Ben flagged goes: no hint shares a word with an answer that was accepted or added.
    assert report["questions_removed"] == {"flagged_leak": 1}
    gone = [row["question_id"] for row in opened.read("changes").to_pylist() if row["change"] == "question_removed"]
    assert gone == [fourth]
    assert now == {place: label for place, label in expected.items() if place[0] != fourth}
    changes = [row for row in opened.read("changes").to_pylist() if row["change"] == "label"]
    assert {(row["question_id"], row["permutation"]): (row["before"], row["after"]) for row in changes} == {
        place: (before[place], label) for place, label in now.items() if before[place] != label
    }
    assert second not in {row["question_id"] for row in opened.read("changes").to_pylist()}
    ids = {row["review_id"] for row in reviews if row["question_id"] == first}
    assert changes and all(row["question_id"] == first and set(row["reviews"]) == ids for row in changes)
    added = {row["answer"] for row in opened.read("changes").to_pylist() if row["change"] == "answer_added"}
    assert "A <b>quite</b> new name" in added

    # Ben deletes his annotation of the first: Ada's word stands alone, and so do the labels. Then Ada's goes: all is as
    # it was.
    for annotation in sorted({row["annotation"] for row in reviews}):
        server.ask(lambda studio, number=annotation: studio.annotations.delete(number))
    pulled = json.loads(quit_review("pull", "-w", str(workspace), "--url", live.account.url, "--json").stdout)
    assert pulled["withdrawn"] == 3 + len(order) // 2
    assert quit_review("apply", "-w", str(workspace)).returncode == 0
    for name, run in (("labels", "label"), ("valid_answers", "label"), ("verdicts", "judge"), ("splits", "split")):
        assert opened.read(name).equals(opened.read(name, runs=[run])), name
    rows = opened.read("reviews").to_pylist()
    assert rows[: len(reviews)] == reviews  # append-only

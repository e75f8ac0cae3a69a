"""Push on a real server: idempotent, versioned, ordered, and finished by the next push wherever it was killed."""

import json
import re
import shutil
import threading
from dataclasses import replace
from typing import Any

import httpx
import pytest

from quit.annotation import project
from quit.annotation.client import Server
from quit.annotation.project import label_config
from quit.annotation.push import overlaps, push
from quit.annotation.sync import pull
from quit.annotation.tasks import SUGGESTIONS, alias, make_task
from quit.engine.workspace import Workspace
from quit.errors import InputError, ServerError
from quit.review.controls import Controls
from quit.review.items import ReviewAnswer, ReviewItem
from quit.review.store import ReviewStore
from quit.settings import Review
from tests.label_studio import annotate, page_result

pytestmark = pytest.mark.slow


def item(number: int, *answers: ReviewAnswer, split: str = "dev") -> ReviewItem:
    """A question with two answers, the first the gold one, or with those given."""
    answers = answers or (
        ReviewAnswer("gold", ("Gold", "gold"), 9, ("one",), True, None, True),
        ReviewAnswer("tin", ("Tin <script>alert(1)</script>",), 3, ("one", "two"), False, 0.4, False),
    )
    hints = ("It shines.", "It is soft.")
    return ReviewItem(f"q{number:03d}", split, f"Which metal is <b>{number}</b>?", ("Gold",), hints, answers)


def _tasks(server: Server, project: int) -> dict[str, Any]:
    fields = ["id", "meta", "data", "predictions", "model_version", "result", "updated_at", "overlap"]
    tasks = list(server.tasks(project, fields))
    assert len({task.meta["key"] for task in tasks}) == len(tasks), "a task was doubled"
    return {task.meta["key"]: task for task in tasks}


def test_pushing_again_changes_nothing(store, server, settings) -> None:
    items = [item(number) for number in (7, 3, 9, 1, 5, 2)]
    pushed = push(store, server, settings, items)
    assert (pushed.created, pushed.new, pushed.changed, pushed.unchanged) == (True, 6, 0, 0)
    before = _tasks(server, pushed.project)
    assert list(before) == ["q007", "q003", "q009", "q001", "q005", "q002"]  # the queue's order
    again = push(store, server, settings, items)
    assert (again.created, again.new, again.changed, again.unchanged, again.project) == (False, 0, 0, 6, pushed.project)
    assert _tasks(server, pushed.project) == before
    facts = server.ask(lambda studio: studio.projects.get(pushed.project))
    assert facts.show_collab_predictions and facts.model_version == SUGGESTIONS
    [suggestion] = before["q007"].predictions
    assert suggestion.model_version == SUGGESTIONS
    assert [entry["value"] for entry in suggestion.result if entry["from_name"] == "correct"] == [
        {"choices": [alias("q007", "gold")]}
    ]
    assert "<script>" not in before["q007"].data["candidates"][2]["html"]


def test_a_changed_question_gets_a_new_version_and_keeps_the_old_prediction(store, server, settings) -> None:
    first = push(store, server, settings, [item(1), item(2)])
    untouched = _tasks(server, first.project)["q002"]
    gold, tin = item(1).answers
    zinc = ReviewAnswer("zinc", ("Zinc",), 2, ("two",), False, 0.1, False)
    changed = replace(item(1), answers=(gold, replace(tin, verdict=True), zinc))
    reports = [push(store, server, settings, [changed, item(2)]) for _ in range(2)]
    assert [(report.new, report.changed, report.unchanged) for report in reports] == [(0, 1, 1), (0, 0, 2)]
    tasks = _tasks(server, first.project)
    assert tasks["q002"] == untouched
    task = tasks["q001"]
    assert task.meta["version"] == 2
    since = {row["key"]: (row["since"], row["until"]) for row in task.data["answers"]}
    assert since == {"gold": (1, None), "tin": (1, None), "zinc": (2, None)}
    assert [prediction.model_version for prediction in task.predictions] == [SUGGESTIONS, SUGGESTIONS]
    current = max(task.predictions, key=lambda prediction: prediction.id)
    ticked = next(entry["value"]["choices"] for entry in current.result if entry["from_name"] == "correct")
    assert set(ticked) == {alias("q001", "gold"), alias("q001", "tin")}
    # An answer that is gone stays known, so that what people said about it stays readable.
    push(store, server, settings, [replace(item(1), answers=(gold,)), item(2)])
    task = _tasks(server, first.project)["q001"]
    [ticks] = max(task.predictions, key=lambda prediction: prediction.id).result  # the first version's again
    assert len(task.predictions) == 3 and ticks["value"] == {"choices": [alias("q001", "gold")]}
    rows = {row["key"]: row["until"] for row in task.data["answers"]}
    assert rows == {"gold": None, "tin": 3, "zinc": 3}


def test_new_answers_of_a_task_that_was_done_are_told(store, server, settings) -> None:
    first = push(store, server, settings, [item(1), item(2)])
    task = _tasks(server, first.project)["q001"].id
    annotate(server, task, page_result("q001", "gold"))
    zinc = ReviewAnswer("zinc", ("Zinc",), 2, ("two",), False, 0.1, False)
    more = [replace(each, answers=(*each.answers, zinc)) for each in (item(1), item(2))]
    [problem] = push(store, server, settings, more).problems
    assert problem.startswith(f"New answers in 1 finished task, which nobody has judged: {task}.")
    assert f"data?task={task}, ...)" in problem
    assert push(store, server, settings, more).problems == []
    assert push(store, server, settings, [item(1), item(2)]).problems == []  # an answer less is not new


def test_a_push_killed_with_its_server_is_finished_by_the_next(store, live, settings) -> None:
    items = [item(number) for number in range(10)]

    def die(line: str) -> None:
        if line.startswith("4 of"):  # after the first request of three
            live.kill()

    try:
        with pytest.raises(ServerError, match="Nothing is lost"):
            push(store, live.client(settings), settings, items, say=die)
    finally:
        live.restart()
    server = live.client(settings)
    report = push(store, server, settings, items)
    assert (report.created, report.new, report.unchanged) == (False, 6, 4)
    assert list(_tasks(server, report.project)) == [question.question_id for question in items]


@pytest.mark.parametrize(
    "seconds",
    [{0: 0.0}, {0: 0.5}, {1: 0.0}, {1: 0.5}, {2: 0.5}, {1: None, 2: 0.5}],
    ids=["project", "project late", "tasks", "tasks late", "more tasks late", "tasks never, then late"],
)
def test_what_a_lost_answer_was_about_is_not_sent_twice(store, server, settings, monkeypatch, seconds) -> None:
    """``seconds``: of the requests whose line breaks, by number: when the server carries them out, None for never."""
    real, sent = Server.ask, []

    def lossy(self, call, *, again=True):
        if again:
            return real(self, call)
        number = len(sent)
        sent.append(call)
        if number not in seconds:
            return real(self, call, again=False)
        if (delay := seconds[number]) is not None:
            later = threading.Timer(delay, real, (self, call))
            later.start()
            if not delay:
                later.join()
        raise ServerError("the line broke")

    monkeypatch.setattr(project, "STILL_SECONDS", 2.0)
    monkeypatch.setattr(Server, "ask", lossy)
    report = push(store, server, settings, [item(number) for number in range(6)])
    assert (report.created, report.new, len(sent)) == (True, 6, 4 if None in seconds.values() else 3)
    assert list(_tasks(server, report.project)) == [f"q{number:03d}" for number in range(6)]


def test_a_task_that_arrives_twice_is_deleted_where_nobody_has_worked_on_it(store, server, settings, people) -> None:
    items = [item(number) for number in range(4)]
    number = push(store, server, settings, items).project
    first = {question: task.id for question, task in _tasks(server, number).items()}
    copies: Any = [make_task(question) for question in items]
    server.ask(lambda studio: studio.projects.import_tasks(number, request=copies))
    second = {task.meta["key"]: task.id for task in server.tasks(number, ["id", "meta"])}
    annotate(server, first["q001"], page_result("q001", "gold"))
    for question in ("q001", "q002"):
        annotate(server, second[question], page_result(question, "gold"))
    ada = {"Authorization": f"Token {people['ada@example.org']}"}
    address = f"{server.url}/api/tasks/{second['q003']}/drafts"
    httpx.post(address, json={"result": [], "lead_time": 1.0}, headers=ada, timeout=60).raise_for_status()
    [problem] = push(store, server, settings, items).problems
    assert problem == f"Task {second['q001']} doubles task {first['q001']} (q001): delete one of them."
    left = {first["q000"], first["q001"], second["q001"], second["q002"], second["q003"]}
    assert {task.id for task in server.tasks(number, ["id"])} == left


def test_a_change_that_the_server_accepts_and_does_not_make_is_said(store, server, settings, monkeypatch) -> None:
    push(store, server, settings, [item(1), item(2)])
    changed = [replace(item(1), question="Which metal?"), item(2)]
    with monkeypatch.context() as patched, pytest.raises(ServerError, match=r"does not show: 1 of 1 \(q001"):
        patched.setattr("quit.annotation.push._update", lambda *_, **__: None)
        push(store, server, settings, changed)
    assert push(store, server, settings, changed).changed == 1


def test_a_copy_of_a_workspace_changes_nothing_in_the_projects_pages(store, server, settings, tmp_path) -> None:
    pushed = push(store, server, settings, [item(1)])
    before = _tasks(server, pushed.project)
    here, changed = store.workspace.path, [replace(item(1), question="Which metal?")]
    copy = ReviewStore(Workspace.open(shutil.copytree(here, tmp_path / "copy")))
    with pytest.raises(InputError, match=f"is a copy of {here}: .*Nothing was pushed.*--new-project"):
        push(copy, server, settings, changed)
    assert _tasks(server, pushed.project) == before
    assert push(copy, server, settings, changed, new_project=True).created
    assert push(copy, server, settings, changed).unchanged == 1
    moved = ReviewStore(Workspace.open(here.rename(tmp_path / "moved")))
    assert push(moved, server, settings, changed).changed == 1


def test_an_edited_configuration_stops_a_push_and_can_be_put_back(store, server, settings) -> None:
    pushed = push(store, server, settings, [item(1)])
    edited = label_config().replace('value="Offensive"', 'value="Rude"')
    server.ask(lambda studio: studio.projects.update(pushed.project, label_config=edited))
    with pytest.raises(InputError, match=rf"project {pushed.project} .* was edited.*--repair-config"):
        push(store, server, settings, [item(1), item(2)])
    assert list(_tasks(server, pushed.project)) == ["q001"]
    report = push(store, server, settings, [item(1), item(2)], repair=True)
    assert report.repaired and report.has_news
    assert report.new == 1 and "put back" in report.problems[0]
    assert push(store, server, settings, [item(1), item(2)]).problems == []


def test_two_projects_for_one_workspace_are_told_apart(store, server, settings) -> None:
    pushed = push(store, server, settings, [item(1)])
    description = server.ask(lambda studio: studio.projects.get(pushed.project)).description
    facts = {"title": "Copied", "description": description, "label_config": label_config()}
    copy = server.ask(lambda studio: studio.projects.create(**facts))
    with pytest.raises(InputError, match=rf"{pushed.project}, {copy.id}\. .*--project"):
        push(store, server, settings, [item(1)])
    assert push(store, server, settings, [item(1)], project=pushed.project).unchanged == 1
    with pytest.raises(InputError, match=rf"{pushed.project}, {copy.id}\. .*--project"):
        push(store, server, settings, [item(1)], project=999999)


def test_tasks_deleted_by_hand_are_made_anew_and_a_deleted_project_is_said(store, server, settings) -> None:
    pushed = push(store, server, settings, [item(1), item(2)])
    deleted = _tasks(server, pushed.project)["q001"].id
    server.ask(lambda studio: studio.tasks.delete(str(deleted)))
    again = push(store, server, settings, [item(1), item(2)])
    assert (again.new, again.remade, again.unchanged) == (1, 1, 1) and "deleted on the server" in again.problems[0]
    server.ask(lambda studio: studio.projects.delete(pushed.project))
    with pytest.raises(InputError, match="no project of this workspace.*--new-project"):
        push(store, server, settings, [item(1)])
    assert push(store, server, settings, [item(1)], new_project=True).created


def test_an_adjudicator_without_an_account_is_told(store, server, live, settings, people) -> None:
    def problems(address: str) -> list[list[str]]:
        review = settings.review.model_copy(update={"adjudication": "adjudicator", "adjudicator": address})
        settling = settings.model_copy(update={"review": review})
        studio = live.client(settling)
        return [push(store, studio, settling, [item(1)]).problems, pull(store, studio, settling).problems]

    assert problems("Ada@example.org") == [[], []]  # as servers compare addresses
    for [problem] in problems("adda@example.org"):
        assert problem.startswith(f"review.adjudicator is adda@example.org, and {server.url} has no such account")


def test_personal_access_tokens_work(live, settings) -> None:
    token = live.client(settings).ask(lambda studio: studio.tokens.create()).token
    me = live.client(settings, token=token).ask(lambda studio: studio.users.whoami())
    assert me.email == live.account.email


def test_control_questions_are_spread_and_open_to_everyone(store, server, settings) -> None:
    items = [item(number) for number in range(18)] + [item(number, split="train") for number in range(90, 94)]
    controls = Controls({f"q{number:03d}": {"gold": True} for number in range(90, 94)})
    review = settings.review.model_copy(update={"control_share": 0.1, "blind": 1.0})
    sharing = settings.model_copy(update={"review": review})
    report = push(store, server, sharing, items, controls)
    tasks = _tasks(server, report.project)
    positions = [position for position, key in enumerate(tasks) if key in controls.questions]
    assert report.controls == 2 and len(tasks) == 20 and positions == [5, 15]
    assert {task.overlap for key, task in tasks.items() if key in controls.questions} == {controls.annotators}
    assert not any("control" in str(task.data) + str(task.meta) for task in tasks.values())
    # But for the ids, blind tasks and control questions are the same in data, meta and predictions.
    of_a_task = r'q\d{3}|<b>\d+|a[0-9a-f]{10}|"(digest|history)": "\w+"|"seen": \{[^}]*\}'
    parts = [[task.data, task.meta, [p.result for p in task.predictions]] for task in tasks.values()]
    assert report.blind == 20 and len({re.sub(of_a_task, "", json.dumps(part)) for part in parts}) == 1


def test_a_share_of_the_questions_is_done_by_several_people_whatever_comes_later() -> None:
    names = [f"q{number}" for number in range(2500)]
    review = Review(overlap=3, overlap_share=0.2)
    numbers = overlaps(names[:2000], None, review, "quit")
    assert {*numbers.values()} == {1, 3} and 350 < sum(number == 3 for number in numbers.values()) < 450
    assert overlaps(names, None, review, "quit").items() >= numbers.items()


def test_what_one_person_did_twice_is_open_for_another(store, server, settings, live, people) -> None:
    items = [item(1), item(2)]
    number = push(store, server, settings, items).project
    task = _tasks(server, number)["q001"].id
    for name in ("ada", "ada"):
        annotate(live.client(settings, people[f"{name}@example.org"]), task, page_result("q001", "gold"))
    annotate(server, task, page_result("q001", "gold", shown=None), lead_time=None)  # by a program: nobody's
    twice = settings.model_copy(update={"review": settings.review.model_copy(update={"overlap": 2})})

    def state() -> tuple[int, bool]:
        push(store, server, twice, items)
        [found] = [one for one in server.tasks(number, ["id", "overlap", "is_labeled"]) if one.id == task]
        return found.overlap, found.is_labeled

    assert state() == (4, False)
    ben = {"Authorization": f"Token {people['ben@example.org']}"}
    following = httpx.get(f"{server.url}/api/projects/{number}/next/", headers=ben, timeout=60).json()
    assert following["id"] == task
    annotate(live.client(settings, people["ben@example.org"]), task, page_result("q001", "gold"))
    assert state() == (4, True)


def test_each_question_is_done_by_as_many_people_as_the_settings_say(store, server, settings, people) -> None:
    def set_to(controls: Controls | None, **review: Any) -> dict[str, tuple[int, bool]]:
        changed = settings.model_copy(update={"review": settings.review.model_copy(update=review)})
        number = push(store, server, changed, items, controls).project
        tasks = server.tasks(number, ["id", "meta", "overlap", "is_labeled"])
        return {task.meta["key"]: (task.overlap, task.is_labeled) for task in tasks}

    items, controls = [item(number) for number in range(8)], Controls({"q000": {"gold": True}})
    everyone = {"q000": (controls.annotators, False)}
    assert set_to(controls) == {f"q00{number}": (1, False) for number in range(8)} | everyone
    tasks = _tasks(server, store.project["id"])
    for question in ("q000", "q001"):
        annotate(server, tasks[question].id, page_result(question, "gold"))
    # What is done is open again for the second, and a control question is for everyone, whatever else is set.
    twice = set_to(controls, overlap=2)
    assert twice == {f"q00{number}": (2, False) for number in range(8)} | everyone
    shared = set_to(controls, overlap=2, overlap_share=0.3)
    assert {overlap for overlap, _ in shared.values()} == {1, 2, controls.annotators}
    assert shared["q001"][1] is (shared["q001"][0] == 1)
    items.append(item(8))
    assert set_to(controls, overlap=2, overlap_share=0.3).items() >= shared.items()
    assert set_to(None) == {f"q00{number}": (1, number < 2) for number in range(9)}

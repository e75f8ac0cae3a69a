"""Pull on a real server: every version once, withdrawals, skips, strangers' edits, and kills."""

from typing import Any

import httpx
import pytest

from quit.annotation.client import Server
from quit.annotation.push import push
from quit.annotation.sync import pull
from quit.annotation.tasks import NONE, SUGGESTIONS
from quit.errors import ServerError
from quit.review.store import ReviewStore
from quit.stages.labelling.verdicts import decide, live_reviews
from tests.annotation.test_push import item
from tests.label_studio import annotate, page_result

pytestmark = pytest.mark.slow
KEYS = ("gold", "tin")


@pytest.fixture
def pushed(store, server, settings) -> dict[str, int]:
    """Question -> task of a project of six questions."""
    report = push(store, server, settings, [item(number) for number in range(6)])
    return {task.meta["key"]: task.id for task in server.tasks(report.project, ["id", "meta"])}


def _rewrite(server: Server, annotation: int, result: list[dict]) -> None:
    server.ask(lambda studio: studio.annotations.update(annotation, result=result))


def _delete(server: Server, annotation: int) -> None:
    server.ask(lambda studio: studio.annotations.delete(annotation))


def _verdicts(store: ReviewStore, settings) -> dict[tuple[str, str], bool]:
    rows = decide(live_reviews(store.read()), settings.review).to_pylist()
    return {(row["question_id"], row["key"]): row["decision"] for row in rows}


def test_versions_skips_and_withdrawals_become_rows_once(store, server, settings, pushed, people) -> None:
    ada = Server(server.url, people["ada@example.org"], settings.review)
    number = annotate(ada, pushed["q000"], page_result("q000", "gold", "tin", missing=["Aurum"], note=["sure"]))
    annotate(ada, pushed["q001"], page_result("q001", "gold"), was_cancelled=True)
    report = pull(store, server, settings)
    assert (report.versions, report.skipped, report.withdrawn, report.problems) == (2, 1, 0, [])
    rows = store.read().to_pylist()
    assert {row["annotator"] for row in rows} == {"ada@example.org"}
    columns = ("question_id", "kind", "answer_key", "correct", "suggested")
    assert [tuple(row[name] for name in columns) for row in rows] == [
        ("q000", "annotation", None, None, None),
        ("q000", "answer", "gold", True, True),
        ("q000", "answer", "tin", True, False),
        ("q000", "missing", "aurum", True, None),
        ("q000", "note", None, None, None),
        ("q001", "annotation", None, None, None),  # ticks of a skipped page say nothing
    ]
    assert pull(store, server, settings).rows == pull(store, server, settings, full=True).rows == 0

    _rewrite(ada, number, page_result("q000", NONE, flags=["gold_wrong"]))
    assert pull(store, server, settings).versions == 1
    rejected = {("q000", "gold"): False, ("q000", "tin"): False, ("q000", "gold_wrong"): True}
    assert _verdicts(store, settings) == rejected
    _delete(server, number)
    gone = pull(store, server, settings)
    assert (gone.versions, gone.withdrawn, gone.rows) == (0, 1, 1)
    assert _verdicts(store, settings) == {}
    kept = store.read().to_pylist()
    headers = [row for row in kept if row["annotation"] == number and row["kind"] == "annotation"]
    assert kept[: len(rows)] == rows and [row["version"] for row in headers] == [1, 2, 3]
    assert pull(store, server, settings).rows == 0


def test_an_unknown_choice_is_kept_and_said(store, server, settings, pushed) -> None:
    result = page_result("q002", "gold", flags=["leak", "dull"])
    result[1]["value"]["choices"].append("a0123456789")
    annotate(server, pushed["q002"], result)
    report = pull(store, server, settings)
    assert "never had: a0123456789, dull" in report.problems[0]
    rows = store.read().to_pylist()
    assert [row["text"] for row in rows if row["kind"] == "unknown"] == ["a0123456789", "dull"]
    assert _verdicts(store, settings) == {("q002", "gold"): True, ("q002", "tin"): False, ("q002", "leak"): True}


def test_what_a_button_an_import_or_a_program_made_is_no_verdict(store, server, settings, pushed, live) -> None:
    def post(path: str, **body: Any) -> None:
        headers = {"Authorization": f"Token {live.account.token}"}
        httpx.post(f"{server.url}/api/{path}", json=body, headers=headers, timeout=60).raise_for_status()

    project = store.project["id"]
    number = annotate(server, pushed["q000"], page_result("q000", "gold", "tin"))
    [task] = [task for task in server.tasks(project, ["id", "data", "meta", "result"]) if task.id == pushed["q005"]]
    selected = {"all": False, "included": [pushed["q001"], pushed["q002"]]}
    buttons = {
        "predictions_to_annotations": {"model_version": SUGGESTIONS},
        "propagate_annotations": {"source_annotation_id": number},
    }
    for button, values in buttons.items():
        post(f"dm/actions?id={button}&project={project}", selectedItems=selected, **values)
    copy = {"completed_by": 1, "lead_time": 4.0, "result": page_result("q005", "gold")}
    server.ask(lambda studio: studio.tasks.delete(str(task.id)))
    imported = [{"data": task.data, "meta": task.meta, "annotations": [copy]}]
    server.ask(lambda studio: studio.projects.import_tasks(project, request=imported))
    annotate(server, pushed["q003"], page_result("q003", "gold", shown=None), lead_time=None)
    report = pull(store, server, settings)
    assert (report.versions, report.copied, report.verdicts) == (1, 6, 2)
    assert {question for question, _ in _verdicts(store, settings)} == {"q000"}
    assert report.problems[0].startswith("Not submitted on a page: 6 annotations by owner@quit.local. A button")


def test_what_cannot_be_read_is_said_by_every_pull_until_it_can(store, server, settings, pushed) -> None:
    project = store.project["id"]
    [task] = [task for task in server.tasks(project, ["id", "data"]) if task.id == pushed["q005"]]
    foreign = {"data": task.data, "annotations": [{"result": page_result("q005", "gold")}]}
    server.ask(lambda studio: studio.projects.import_tasks(project, request=[foreign]))
    for _ in range(2):
        [problem] = pull(store, server, settings).problems
        assert "was not made by quit: its 1 annotations are not read" in problem
    [task] = [task for task in server.tasks(project, ["id"]) if task.id not in pushed.values()]
    server.ask(lambda studio: studio.tasks.delete(str(task.id)))
    assert pull(store, server, settings).problems == []


def test_a_strangers_edit_does_not_count_and_the_own_version_does(store, server, settings, pushed, people) -> None:
    ada = Server(server.url, people["ada@example.org"], settings.review)
    number = annotate(ada, pushed["q003"], page_result("q003", "gold"))
    pull(store, server, settings)
    _rewrite(server, number, page_result("q003", NONE))
    report = pull(store, server, settings)
    assert "by ada@example.org was changed by owner@quit.local" in report.problems[0]
    assert _verdicts(store, settings) == {("q003", "gold"): True, ("q003", "tin"): False}


def test_a_deleted_task_withdraws_nothing(store, server, settings, pushed) -> None:
    annotate(server, pushed["q004"], page_result("q004", "tin"))
    pull(store, server, settings)
    server.ask(lambda studio: studio.tasks.delete(str(pushed["q004"])))
    report = pull(store, server, settings)
    assert report.withdrawn == 0 and "Deleted on the server: 1 task that people" in report.problems[0]
    assert _verdicts(store, settings) == {("q004", "tin"): True}
    assert push(store, server, settings, [item(number) for number in range(6)]).remade == 1
    [problem] = pull(store, server, settings).problems  # the task that she did is no more
    assert problem.startswith("Ask ") and problem.endswith("else tick the answer.")


def test_what_nobody_said_is_asked_back_about_until_it_is_said(store, server, settings, pushed, people) -> None:
    ada = Server(server.url, people["ada@example.org"], settings.review)
    ticked = {"q000": (), "q001": (NONE, "tin"), "q002": ("tin",), "q003": ("gold",)}
    numbers = {name: annotate(ada, pushed[name], page_result(name, *keys)) for name, keys in ticked.items()}
    for _ in range(2):  # asked at every pull
        report = pull(store, server, settings)
        assert report.unclear == len(report.problems) == 3
        wording = {"q000": "nothing is ticked", "q001": "and so is an", "q002": "expected answer 'Gold'"}
        for question, words in wording.items():
            [problem] = [problem for problem in report.problems if question in problem]
            assert words in problem and problem.endswith(f"/projects/{report.project}/data?task={pushed[question]}")
    assert _verdicts(store, settings) == {("q002", "tin"): True, ("q003", "gold"): True, ("q003", "tin"): False}
    _rewrite(ada, numbers["q000"], page_result("q000", "gold"))
    _rewrite(ada, numbers["q001"], page_result("q001", NONE, flags=["gold_wrong"]))
    _rewrite(ada, numbers["q002"], page_result("q002", "gold", "tin"))
    report = pull(store, server, settings)
    assert (report.versions, report.unclear, report.problems) == (3, 0, [])
    answers = {key: value for key, value in _verdicts(store, settings).items() if key[1] != "gold_wrong"}
    right = {("q000", "gold"), ("q002", "gold"), ("q002", "tin"), ("q003", "gold")}
    assert answers == {(f"q00{number}", key): (f"q00{number}", key) in right for number in range(4) for key in KEYS}


def test_a_pull_killed_with_its_server_counts_everything_once(store, live, settings, pushed, monkeypatch) -> None:
    server = live.client(settings)
    for question, task in pushed.items():
        annotate(server, task, page_result(question, "gold"))
    real, calls = Server.tasks, []

    def dying(self, project, include, among=None):
        for task in real(self, project, include, among):
            calls.append(task.id)
            if len(calls) == 3:  # in the middle of the first page of two
                live.kill()
            yield task

    try:
        with monkeypatch.context() as patched, pytest.raises(ServerError, match="Nothing is lost"):
            patched.setattr(Server, "tasks", dying)
            pull(store, server, settings)
        assert store.parts == []
    finally:
        live.restart()
    assert pull(store, live.client(settings), settings).versions == 6
    # Killed after the rows were written, before it was noted what was seen: the same again, and nothing new.
    (store.folder / "sync.json").unlink()
    assert pull(store, live.client(settings), settings).rows == 0
    headers = [row["annotation"] for row in store.read().to_pylist() if row["kind"] == "annotation"]
    assert len(headers) == len(set(headers)) == 6
    # Losing every note loses no review.
    key = store.project["key"]
    for path in store.folder.glob("*.json"):
        path.unlink()
    store.set_project({"key": key})
    assert pull(store, live.client(settings), settings).rows == 0

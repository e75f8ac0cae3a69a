"""What a pull makes of annotations, without a server: edits at earlier times, lost accounts, bad data."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from quit.annotation.project import label_config
from quit.annotation.push import push
from quit.annotation.reports import PushReport
from quit.annotation.sync import TaskReader, pull
from quit.annotation.tasks import make_task, next_version
from quit.annotation.versions import Versions
from quit.annotation.words import about_uncounted
from quit.commands.review import _pull
from quit.errors import InputError, ServerError, WorkspaceError
from quit.flows import calling
from quit.library import reviewing
from quit.review.items import with_blind
from quit.review.report import pieces
from quit.review.status import review_status
from quit.review.store import ReviewStore
from quit.settings import Review, Settings
from quit.stages.labelling.verdicts import decide, live_reviews, unclear_annotations
from tests.annotation.test_push import item
from tests.label_studio import page_result
from tests.running import call_quit

EMAILS = {1: "ada@example.org", 2: "ben@example.org"}
BLIND = with_blind([item(0)], 1.0, "seed")[0]
GOLD, TIN = item(0).answers


def annotation(number: Any = 10, who: int | None = 1, at: Any = "2026-01-02T00:00:00Z", **more: Any) -> dict[str, Any]:
    ticks = page_result("q000", *more.pop("ticks", ("gold", "tin")), **more.pop("texts", {}))
    times = {"created_at": "2026-01-01T00:00:00Z", "updated_at": at}
    return {"id": number, "completed_by": who, "updated_by": who, "result": ticks, "lead_time": 3.0, **times, **more}


@pytest.fixture
def take(store: ReviewStore):
    """Pull some annotations of a task, and return what is said about them."""
    store.set_project({"key": "p"})
    task = make_task(item(0))

    def pull(*annotations: dict[str, Any], task: dict[str, Any] = task) -> list[str]:
        versions = Versions(store)
        reader = TaskReader(SimpleNamespace(email=EMAILS.__getitem__), versions)  # type: ignore[arg-type]
        task = SimpleNamespace(id=7, meta=task["meta"], data=task["data"], annotations=list(annotations))
        problems = reader.read(task)
        store.append(versions.new)
        return problems + about_uncounted([*versions.latest.values()], versions.unknown_choices)

    return pull


class Memory:
    """A server as a pull sees it, with its tasks in memory."""

    url = "http://server"
    description = "[quit-review 0123456789ab]"
    email = EMAILS.__getitem__

    def __init__(self) -> None:
        self.annotations: dict[int, list[dict[str, Any]]] = {7: [annotation()], 8: []}
        self.changed = "2026-01-02T00:00:00Z"
        self.read: list[Any] = []

    def ask(self, call: Any, **_: Any) -> Any:
        counts = {"task_number": 2, "finished_task_number": None, "skipped_annotations_number": 0}
        counts["total_annotations_number"] = sum(map(len, self.annotations.values()))
        facts = SimpleNamespace(id=1, description=self.description, label_config=label_config(), **counts)
        return call(SimpleNamespace(projects=SimpleNamespace(list=lambda **_: [facts], get=lambda _: facts)))

    def tasks(self, project: int, include: Any, among: Any = None) -> Any:
        ours = make_task(item(0))
        self.read += among or ()
        for number, rows in self.annotations.items():  # the second task was made by hand
            task = {"meta": ours["meta"], "data": ours["data"]} if number == 7 else {"meta": {}, "data": {}}
            ids = ",".join(str(row["id"]) for row in rows)
            if among is None or number in among:
                yield SimpleNamespace(id=number, annotations=rows, annotations_ids=ids, updated_at=self.changed, **task)


@pytest.fixture
def memory(store: ReviewStore) -> Any:
    store.set_project({"key": "0123456789ab", "url": Memory.url, "id": 1, "tasks": []})
    return Memory()


def test_a_project_with_the_number_of_an_earlier_one_is_read_and_told_anew(memory: Any, store: ReviewStore) -> None:
    pull(store, memory, Settings())
    store.set_sync({**store.sync, "done": 2})
    assert review_status(store.workspace, Review())["project"]["done"] == 2
    memory.description = "[quit-review fedcba987654]"
    store.set_project({"key": "fedcba987654", "url": "http://other", "id": 1, "tasks": ["q000"]})
    assert review_status(store.workspace, Review())["project"]["done"] == 0
    pull(store, memory, Settings())
    pull(store, memory, Settings())
    assert memory.read == [7, 8, 7, 8]
    pull(store, memory, Settings(), full=True)
    assert memory.read == [7, 8, 7, 8, 7, 8]


@pytest.mark.parametrize("at", ["2026-01-02T00:00:00Z", "2020-01-01T00:00:00Z", "2050-01-01T00:00:00Z"])
def test_a_pull_misses_nothing_because_a_clock_was_wrong(memory: Any, store: ReviewStore, at: str) -> None:
    pull(store, memory, Settings())
    memory.changed = at  # when the server says that it has changed
    memory.annotations[7].append(annotation(11, 2, at, ticks=("gold",)))
    assert pull(store, memory, Settings()).versions == 1 and tin(store) == (None, 1, 1)
    assert pull(store, memory, Settings()).versions == 0


@pytest.mark.parametrize("reused", [False, True])
@pytest.mark.parametrize(
    ("total", "lost", "held"),
    [(1, 1, 0), (2, 1, 0), (2, 2, 2), (6, 3, 0), (6, 4, 4), (30, 6, 0), (30, 7, 7), (200, 20, 0), (200, 21, 21)],
)
def test_many_annotations_that_are_gone_at_once_count_until_that_is_accepted(
    memory: Any, store: ReviewStore, settings: Settings, total: int, lost: int, held: int, reused: bool
) -> None:
    """All, more than a fifth, or more than a few. A server put back from a backup gives their numbers again."""
    everyone = [annotation(number, number) for number in range(1, total + 1)]
    memory.email = "person-{}@example.org".format
    memory.annotations[7] = everyone
    pull(store, memory, settings)
    again = [annotation(row["id"], 999, created_at="2026-02-01T00:00:00Z", ticks=("gold",)) for row in everyone[:lost]]
    memory.annotations[7], memory.changed = [*(again if reused else ()), *everyone[lost:]], "2026-02-01T00:00:00Z"
    report = pull(store, memory, settings)
    assert report.held == held
    if held:
        assert report.problems[0].startswith(f"Of {total} pulled annotations, {lost} are gone at once")
        assert (report.rows, report.withdrawn, tin(store)) == (0, 0, (True, total, 0))
        report = pull(store, memory, settings, accept_withdrawals=True)
    assert (report.held, report.withdrawn, report.versions) == (0, 0 if reused else lost, lost if reused else 0)
    if reused:
        assert tin(store)[1:] == (total - lost, 1)
    elif total > lost:
        assert tin(store) == (True, total - lost, 0)
    else:
        assert not len(live_reviews(store.read()))


def test_a_deletion_is_seen_whatever_else_is_new(memory: Any, store: ReviewStore, settings: Settings) -> None:
    assert pull(store, memory, settings).versions == 1 and tin(store) == (True, 1, 0)
    memory.annotations = {7: [], 8: [annotation(12)]}
    assert pull(store, memory, settings).withdrawn == 1
    assert len(live_reviews(store.read())) == 0


def test_a_server_that_lists_no_annotations_has_deleted_none(memory: Any, store, settings: Settings) -> None:
    pull(store, memory, settings)
    every = memory.tasks
    silent = lambda *_, **__: (SimpleNamespace(**{**vars(task), "annotations_ids": None}) for task in every(1, ()))  # noqa: E731
    memory.tasks = silent
    with pytest.raises(
        ServerError, match="does not list the annotations of task 7.*Nothing was pulled. Give that server"
    ):
        pull(store, memory, settings)
    assert tin(store) == (True, 1, 0)


def test_nothing_is_asked_about_pages_of_an_earlier_project(memory: Any, store, settings: Settings) -> None:
    memory.annotations[7] = [annotation(ticks=("tin",))]
    first = pull(store, memory, settings)
    assert first.unclear == 1 and first.problems[0].startswith("Ask ada@example.org about q000")
    memory.description, memory.annotations = "[quit-review fedcba987654]", {7: [], 8: []}
    store.set_project({"key": "fedcba987654", "url": Memory.url, "id": 1, "tasks": ["q000"]})
    second = pull(store, memory, settings)
    assert (second.unclear, second.problems) == (0, [])


def test_a_project_whose_note_is_lost_is_found_by_its_reviews(memory: Any, store, settings: Settings) -> None:
    pull(store, memory, settings)
    note = store.folder / "project.json"
    note.write_text("{", encoding="utf-8")
    with pytest.raises(WorkspaceError, match="from a copy.*delete it: its key is in `reviews`"):
        pull(store, memory, settings)
    note.unlink()
    assert "finds out" in pieces(review_status(store.workspace, Review()))[0]
    memory.description = ""
    with pytest.raises(InputError, match="has no project of this workspace: deleted"):  # none is made with its key
        push(store, memory, settings, [])
    del memory.description
    report = pull(store, memory, settings)
    assert (report.project, report.rows) == (1, 0)
    assert store.project.items() >= {"key": "0123456789ab", "url": Memory.url, "id": 1}.items()


def test_pulls_beside_a_server_say_each_problem_once(memory: Any, store: ReviewStore, capsys) -> None:
    memory.annotations[7] = [annotation(updated_by=2)]
    problems: list[str] = []
    for times in (1, 0):
        problems = _pull(store.workspace, memory, problems)
        assert capsys.readouterr().err.count("was changed by ben@example.org") == times
    memory.changed, memory.annotations[7] = "later", [annotation()]
    assert _pull(store.workspace, memory, problems) == []


def test_all_steps_at_once_say_what_was_met_even_if_the_last_is_refused(store: ReviewStore, monkeypatch) -> None:
    def run(job: Any, **_: Any) -> dict[str, Any]:
        if job is reviewing.label_update:
            raise WorkspaceError("Refused.")
        return {"push": PushReport(problems=["Of the push."])}

    monkeypatch.setattr(calling, "run_job", run)
    store.set_sync({"problems": ["Of the pull."]})
    refused = call_quit("review", "run", "-w", store.workspace.path, code=7)
    assert "Attention: Of the push." in refused.err and "Refused." in refused.err
    assert "Attention: Of the pull." in refused.out


def test_a_push_goes_to_a_known_project_or_makes_one(memory: Any, store: ReviewStore, settings: Settings) -> None:
    with pytest.raises(InputError, match="project 1 .* not both"):
        push(store, memory, settings, [], project=1, new_project=True)


def tin(store: ReviewStore) -> tuple[bool | None, int, int]:
    rows = decide(live_reviews(store.read()), Review()).to_pylist()
    return next((row["decision"], row["yes"], row["no"]) for row in rows if row["key"] == "tin")


def test_what_somebody_else_changed_or_skipped_counts_as_its_annotator_left_it(take, store: ReviewStore) -> None:
    take(annotation())
    for change in ({"ticks": ("gold",)}, {"was_cancelled": True}):
        [first], [problem] = (take(annotation(updated_by=2, **change)) for _ in range(2))  # named at every pull
        assert first == problem
        assert "by ada@example.org was changed by ben@example.org" in problem and problem.endswith("press Update.")
        assert tin(store) == (True, 1, 0)
    assert take(annotation(updated_by=1, was_cancelled=True)) == []
    assert not len(live_reviews(store.read()))


def test_choices_that_a_task_never_had_are_named_at_every_pull_until_they_are_gone(take) -> None:
    odd = {"result": page_result("q000", "gold", flags=["dull"])}
    for _ in range(2):
        [problem] = take(annotation(**odd), annotation(11, 2))
        assert problem.startswith("Annotation 10 of task 7 holds choices that the task never had: dull.")
    assert take(annotation(), annotation(11, 2)) == []


@pytest.mark.parametrize("at", ["2026-01-02T00:00:00Z", "2026-01-01T23:30:00Z"])
def test_another_verdict_counts_whatever_its_time(take, store: ReviewStore, at: str) -> None:
    take(annotation())
    assert tin(store) == (True, 1, 0)
    take(annotation(at=at, ticks=("gold",)))
    assert tin(store) == (False, 0, 1)
    rows = len(store.read())
    take(annotation(at="2026-02-01T00:00:00Z", ticks=("gold",)))
    assert len(store.read()) == rows


COPIES = {
    "a button": {"updated_by": None, "lead_time": None, "texts": {"shown": None}},
    "of another annotation": {"updated_by": None, "lead_time": None},
    "an import": {"updated_by": None},
    "a program": {"lead_time": None, "texts": {"shown": None}},
}


@pytest.mark.parametrize("copy", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize("version", [1, 2])
def test_what_nobody_submitted_is_no_verdict_until_its_annotator_updates_it(take, store, copy, version) -> None:
    task = make_task(item(0))
    if version == 2:
        task = next_version(item(0, TIN, replace(GOLD, passages=8)), SimpleNamespace(**task))
    for _ in range(2):  # named at every pull, taken once
        [problem] = take(annotation(**copy), annotation(11, **copy), task=task)
        assert problem.startswith("Not submitted on a page: 2 annotations by ada@example.org. A button")
    rows = store.read().to_pylist()
    assert [(row["kind"], row["state"], row["correct"]) for row in rows] == [("annotation", "copied", None)] * 2
    assert not len(live_reviews(store.read())) and not unclear_annotations(store.read())
    [problem] = take(annotation(), annotation(11, **copy), task=task)
    assert problem.startswith("Not submitted on a page: 1 annotation by ada") and tin(store) == (True, 1, 0)
    take(annotation(updated_by=None), task=task)  # the account of who saved it last is gone
    assert tin(store) == (True, 1, 0)


def test_annotations_without_an_account_are_of_several_people(take, store: ReviewStore) -> None:
    problems = take(annotation(1, None), annotation(2, None, ticks=("gold",)))
    assert len(problems) == 2 and "has no account" in problems[0]
    assert tin(store) == (None, 1, 1)
    assert {*store.read()["annotator"].to_pylist()} == {"unknown-1", "unknown-2"}


@pytest.mark.parametrize(
    "fault",
    [
        {"at": None},
        {"at": "soon"},
        {"number": "x"},
        {"lead_time": "long"},
        *({"number": number} for number in (2**63, 2**70, float("inf"))),
        {"result": [7]},
        {"created_at": None},
        *(
            {"result": [{"from_name": name, "value": {"choices": [choice]}}]}
            for name in ("correct", "flags")
            for choice in (1, True, None, {})
        ),
    ],
)
def test_one_bad_annotation_is_named_and_the_others_count(take, store: ReviewStore, fault: dict) -> None:
    [problem] = take(annotation(**fault), annotation(11, 2))
    assert f"Annotation {fault.get('number', 10)!r} of task 7 could not be read" in problem
    assert tin(store) == (True, 1, 0)


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), 10**400, 1e300, -5.0])
def test_a_time_that_nobody_takes_costs_no_verdict(take, store: ReviewStore, seconds: float) -> None:
    assert take(annotation(lead_time=seconds)) == []
    rows = live_reviews(store.read()).to_pylist()
    assert rows and {row["lead_seconds"] for row in rows} == {None}


def test_a_text_that_no_table_can_hold_is_kept_without_its_bad_characters(take, store: ReviewStore) -> None:
    assert take(annotation(texts={"note": ["sure \ud800"], "shown": ["²"]})) == []
    assert "sure ?" in store.read()["text"].to_pylist()


@pytest.mark.parametrize(
    ("version", "ticks"),
    [
        (BLIND, ("gold", "tin")),
        (item(0, TIN, GOLD), ("gold", "tin")),
        (item(0, TIN), ("gold", "tin")),
        (item(0, replace(GOLD, forms=("GOLD",)), TIN), ("gold", "tin")),
        (replace(item(0, replace(TIN, gold=True), GOLD), gold_answers=("Gold", "Tin")), ("gold",)),
        (replace(item(0, replace(GOLD, gold=False), TIN), gold_answers=("Zinc",)), ("tin",)),
    ],
    ids=["blind", "another order", "an answer less", "another spelling", "one more is gold", "gold no more"],
)
def test_another_version_of_a_task_changes_no_review(take, store: ReviewStore, version: Any, ticks: tuple) -> None:
    first = make_task(item(0))
    before = take(annotation(ticks=ticks), task=first)
    rows = store.read()
    assert take(annotation(ticks=ticks), task=next_version(version, SimpleNamespace(**first))) == before
    assert store.read().equals(rows) and True in rows["suggested"].to_pylist()


def test_what_names_no_version_is_of_the_page_as_which_it_was_read_first(take, store: ReviewStore) -> None:
    """As another program writes it."""
    first = make_task(item(0))
    lead = replace(TIN, key="lead", forms=("Lead",))
    changed = replace(item(0, GOLD, TIN, lead), question="Another question?")
    second = next_version(changed, SimpleNamespace(**first))
    bare = {"texts": {"shown": None}}
    assert take(annotation(**bare), task=first) == []
    rows = store.read()
    [problem] = take(annotation(**bare), annotation(11, 2, **bare), task=second)
    assert "Annotation 11 of task 7 could not be read" in problem and "which of the 2 versions" in problem
    assert store.read().equals(rows)
    take(annotation(ticks=("gold",), **bare), task=second)
    verdicts = {
        row["answer_key"]: row["correct"] for row in live_reviews(store.read()).to_pylist() if row["answer_key"]
    }
    assert verdicts == {"gold": True, "tin": False}


def test_no_annotation_is_read_by_data_that_somebody_edited(take, store: ReviewStore) -> None:
    task = make_task(item(0))
    take(annotation(), task=task)
    rows = store.read()
    edited = {**task, "data": {**task["data"], "answers": task["data"]["answers"][:1]}}
    [problem] = take(annotation(), annotation(11, 2), task=edited)
    assert "The data of task 7 (q000) were edited: its annotations are not read" in problem
    assert store.read().equals(rows)
    back = next_version(item(0), SimpleNamespace(**edited))
    assert take(annotation(), annotation(11, 2), task=back) == [] and tin(store) == (True, 2, 0)

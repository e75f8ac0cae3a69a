"""What a pull makes of annotations, without a server: edits at earlier times, lost accounts, bad data."""

from types import SimpleNamespace
from typing import Any

import pytest

from quit.annotation.sync import PullReport, _Rows
from quit.annotation.tasks import make_task
from quit.review.store import ReviewStore
from quit.settings import Review
from quit.stages.labelling.verdicts import decide, live_reviews
from tests.annotation.test_push import item
from tests.label_studio import page_result

EMAILS = {1: "ada@example.org", 2: "ben@example.org"}


def annotation(number: Any = 10, who: int | None = 1, at: Any = "2026-01-02T00:00:00Z", **more: Any) -> dict[str, Any]:
    ticks = page_result("q000", *more.pop("ticks", ("gold", "tin")), **more.pop("texts", {}))
    times = {"created_at": "2026-01-01T00:00:00Z", "updated_at": at}
    return {"id": number, "completed_by": who, "result": ticks, "lead_time": 3.0, **times, **more}


@pytest.fixture
def take(store: ReviewStore):
    """Pull some annotations of a task, and return what is said about them."""
    store.set_project({"key": "p"})
    task = make_task(item(0))

    def pull(*annotations: dict[str, Any]) -> list[str]:
        report = PullReport(url="")
        rows = _Rows(store, SimpleNamespace(email=EMAILS.__getitem__), report)  # type: ignore[arg-type]
        rows.take(SimpleNamespace(id=7, meta=task["meta"], data=task["data"], annotations=list(annotations)))
        store.append(rows.new)
        return report.problems

    return pull


def tin(store: ReviewStore) -> tuple[bool | None, int, int]:
    rows = decide(live_reviews(store.read()), Review()).to_pylist()
    return next((row["decision"], row["yes"], row["no"]) for row in rows if row["key"] == "tin")


@pytest.mark.parametrize("at", ["2026-01-02T00:00:00Z", "2026-01-01T23:30:00Z"])
def test_another_verdict_counts_whatever_its_time(take, store: ReviewStore, at: str) -> None:
    take(annotation())
    assert tin(store) == (True, 1, 0)
    take(annotation(at=at, ticks=("gold",)))
    assert tin(store) == (False, 0, 1)
    rows = len(store.read())
    take(annotation(at="2026-02-01T00:00:00Z", ticks=("gold",)))
    assert len(store.read()) == rows


def test_annotations_without_an_account_are_of_several_people(take, store: ReviewStore) -> None:
    problems = take(annotation(1, None), annotation(2, None, ticks=("gold",)))
    assert len(problems) == 2 and "has no account" in problems[0]
    assert tin(store) == (None, 1, 1)
    assert {*store.read()["annotator"].to_pylist()} == {"unknown-1", "unknown-2"}


@pytest.mark.parametrize(
    "fault",
    [{"at": None}, {"at": "soon"}, {"number": "x"}, {"lead_time": "long"}, {"result": [7]}, {"created_at": None}],
)
def test_one_bad_annotation_is_named_and_the_others_count(take, store: ReviewStore, fault: dict) -> None:
    [problem] = take(annotation(**fault), annotation(11, 2))
    assert f"Annotation {fault.get('number', 10)!r} of task 7 could not be read" in problem
    assert tin(store) == (True, 1, 0)


def test_a_text_that_no_table_can_hold_is_kept_without_its_bad_characters(take, store: ReviewStore) -> None:
    assert take(annotation(texts={"note": ["sure \ud800"], "shown": ["²"]})) == []
    assert "sure ?" in store.read()["text"].to_pylist()

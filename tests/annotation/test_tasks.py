"""Tasks without a server: escaping, versions, and that a blind one has no verdict."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from quit.annotation.readings import read_result
from quit.annotation.tasks import alias, digest, make_task, next_version, up_to_date
from quit.review.items import ReviewAnswer, ReviewItem, with_blind
from tests.label_studio import page_result

EVIL = '<img src=x onerror="alert(1)">&amp;'


def answer(key: str, **more) -> ReviewAnswer:
    return replace(ReviewAnswer(key, (key.title(),), 4, ("one",), False, 0.2, False), **more)


ANSWERS = (answer("ada", verdict=True), answer("ben", forms=(EVIL, "Ben")))
ITEM = ReviewItem("q1", "dev", f"Who? {EVIL}", (EVIL,), (EVIL, "Two."), ANSWERS)
GOLDEN = replace(ITEM, answers=(answer("ada", verdict=True, gold=True), answer("ben"), answer("cy")))


def test_html_holds_no_markup_of_models_or_sources_and_every_value_and_alias_is_unique() -> None:
    data = make_task(ITEM)["data"]
    assert not any("<img" in html for html in [data["hints_html"], *(each["html"] for each in data["candidates"])])
    assert "&lt;img" in data["hints_html"] and "&amp;amp;" in data["hints_html"]
    for name in ("value", "alias"):
        assert len({candidate[name] for candidate in data["candidates"]}) == 3  # two answers, and that none is correct
    assert alias("q1", "ada") != alias("q2", "ada")


def test_the_digest_follows_everything_that_is_shown() -> None:
    same = replace(ITEM, stake=9.0, split="test")
    assert digest(same) == digest(ITEM)
    for changes in ({"question": "Who?"}, {"hints": ("x",)}, {"answers": ITEM.answers[:1]}):
        assert digest(replace(ITEM, **changes)) != digest(ITEM)


def test_a_blind_task_does_not_depend_on_any_judge() -> None:
    judged = []
    for verdict, probability, second in ((None, None, None), (True, 0.9, None), (False, 0.1, True), (True, 0.6, False)):
        opinion = {"verdict": verdict, "probability": probability, "second": second}
        judged.append(replace(GOLDEN, answers=tuple(replace(answer, **opinion) for answer in GOLDEN.answers)))
    tasks = {json.dumps(make_task(item), sort_keys=True) for item in with_blind(judged, 1.0, "seed")}
    assert len(tasks) == 1 and len({json.dumps(make_task(item)) for item in judged}) == 4
    [text] = tasks
    assert not any(word in text for word in ("judge", "2nd", "unreadable", "0.9"))
    assert [entry["from_name"] for entry in json.loads(text)["predictions"][0]["result"]] == []


def test_a_task_that_becomes_blind_keeps_no_verdict_and_reads_older_pages_as_they_were() -> None:
    [blind] = with_blind([GOLDEN], 1.0, "seed")
    first = make_task(GOLDEN)
    second = make_task(blind, first["data"])
    assert second["data"]["ticked"] == {"2": []} and second["data"]["blind"] == [2]
    assert digest(blind) != digest(GOLDEN)
    third = make_task(GOLDEN, second["data"])
    assert third["data"]["blind"] == [2] and third["data"]["ticked"]["3"] == [alias("q1", "ada")]
    for data, seen in ((second["data"], {1: None, 2: False}), (third["data"], {1: None, 2: False, 3: True})):
        for shown, suggested in seen.items():
            reading = read_result(page_result("q1", "ada", shown=shown), data)
            assert (reading.blind, reading.answers[0][3]) == (shown == 2, suggested)


@pytest.mark.parametrize("name", [*make_task(ITEM)["data"]])
def test_data_that_were_edited_are_put_back(name: str) -> None:
    changed = replace(ITEM, question="Who else?")
    history = name in ("version", "answers", "ticked", "seen", "blind")
    task = SimpleNamespace(**make_task(ITEM))
    assert up_to_date(ITEM, task) and not up_to_date(changed, task)
    del task.data[name]
    assert not up_to_date(ITEM, task)
    again, later = next_version(ITEM, task), next_version(changed, task)
    assert up_to_date(ITEM, SimpleNamespace(**again)) and up_to_date(changed, SimpleNamespace(**later))
    assert again == make_task(ITEM) if history else again["data"]["version"] == "2"
    assert later["data"]["version"] == "2" and ("1" in later["data"]["seen"]) is not history
    task = SimpleNamespace(**later)
    del task.data["seen"]
    assert next_version(changed, task)["data"]["version"] == "3"

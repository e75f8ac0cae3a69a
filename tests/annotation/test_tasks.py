"""Tasks and results without a server: escaping, versions, and what an annotation is read as."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quit.annotation.project import label_config
from quit.annotation.tasks import FLAGS, NONE, alias, digest, make_task, next_version, read_result, up_to_date
from quit.review.items import ReviewAnswer, ReviewItem, with_blind
from tests.label_studio import page_result

EVIL = '<img src=x onerror="alert(1)">&amp;'


def _answer(key: str, **more) -> ReviewAnswer:
    return replace(ReviewAnswer(key, (key.title(),), 4, ("one",), False, 0.2, False), **more)


def _shown(*lines: str) -> dict:
    return {"from_name": "shown", "value": {"text": [*lines]}}


ANSWERS = (_answer("ada", verdict=True), _answer("ben", forms=(EVIL, "Ben")))
ITEM = ReviewItem("q1", "dev", f"Who? {EVIL}", (EVIL,), (EVIL, "Two."), ANSWERS)


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


@settings(deadline=None)
@given(st.lists(st.sets(st.sampled_from("abcd"), min_size=1), min_size=1, max_size=6))
def test_each_version_is_read_as_its_annotator_saw_it(versions: list[set[str]]) -> None:
    data = None
    for keys in versions:
        data = make_task(replace(ITEM, answers=tuple(_answer(key) for key in sorted(keys))), data)["data"]
    for number, keys in enumerate(versions, start=1):
        reading = read_result([_shown(str(number))], data)
        assert {key for key, *_ in reading.answers} == keys


@pytest.mark.parametrize(
    ("lines", "ticked", "accepted"),
    [
        (["1"], ["ada", "cy"], {"ada": True, "ben": False}),  # ticked by a prediction of the second version
        (["1", "2"], ["ada", "ben"], {"ada": True, "cy": False}),  # ticked on the first, which was updated
        (["1"], ["cy"], {"ada": None, "ben": None}),  # nothing that the page showed is ticked
    ],
)
def test_an_annotation_is_of_the_last_page_and_of_what_that_showed(lines: list, ticked: list, accepted: dict) -> None:
    data = make_task(replace(ITEM, answers=(ANSWERS[0], _answer("cy"))), make_task(ITEM)["data"])["data"]
    reading = read_result([*page_result("q1", *ticked, shown=None), _shown(*lines)], data)
    assert reading.shown == int(lines[-1])
    assert {key: verdict for key, _, verdict, _ in reading.answers} == accepted


def test_what_a_person_said_is_read_whole() -> None:
    data = make_task(ITEM)["data"]
    entry = lambda name, **value: {"from_name": name, "to_name": "question", "value": value}  # noqa: E731
    result = [
        entry("correct", choices=[alias("q1", "ben"), "nonsense"]),
        entry("missing", text=["  Grace ", "Grace", "..."]),
        entry("flags", choices=["offensive", "leak", "odd"]),
        entry("note", text=["one", "two"]),
        entry("new_field", choices=["x"]),
    ]
    reading = read_result(result, data)
    assert reading.answers == (("ada", "Ada", False, True), ("ben", EVIL, True, False))
    assert reading.missing == ("Grace", "...") and reading.flags == ("leak", "offensive") and reading.note == "one\ntwo"
    assert reading.unknown == ("nonsense", "odd", "new_field: {'choices': ['x']}")


GOLDEN = replace(ITEM, answers=(_answer("ada", verdict=True, gold=True), _answer("ben"), _answer("cy")))


@pytest.mark.parametrize(
    ("ticked", "flags", "ask", "accepted"),
    [([], [], "empty", [None, None, None]), ([NONE], ["gold_wrong"], None, [False, False, False]),
     ([NONE, "ben"], [], "both", [None, None, None]), (["ada"], [], None, [True, False, False]),
     (["ben"], [], "gold", [None, True, False]), ([NONE], [], "gold", [None, False, False]),
     (["ben"], ["gold_wrong"], None, [False, True, False]), ([], ["leak"], "empty", [None, None, None])],
)  # fmt: skip
def test_only_what_was_said_is_a_verdict(ticked: list, flags: list, ask: str | None, accepted: list) -> None:
    reading = read_result(page_result("q1", *ticked, flags=flags), make_task(GOLDEN)["data"])
    assert (reading.ask, [row[2] for row in reading.answers]) == (ask, accepted)
    assert reading.empty is (ask == "empty" and not flags) and list(reading.flags) == flags


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


def test_the_page_offers_every_flag() -> None:
    assert [flag for flag in FLAGS if f'alias="{flag}"' in label_config()] == list(FLAGS)

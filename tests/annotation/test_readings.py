"""What a person said, read from an annotation's result as of the page that was seen."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quit.annotation.project import label_config
from quit.annotation.readings import read_result
from quit.annotation.tasks import NONE, alias, make_task
from quit.stages.labelling.verdicts import FLAGS
from tests.annotation.test_tasks import ANSWERS, EVIL, GOLDEN, ITEM, answer
from tests.label_studio import page_result


def _shown(*lines: str) -> dict:
    return {"from_name": "shown", "value": {"text": [*lines]}}


@settings(deadline=None)
@given(st.lists(st.sets(st.sampled_from("abcd"), min_size=1), min_size=1, max_size=6))
def test_each_version_is_read_as_its_annotator_saw_it(versions: list[set[str]]) -> None:
    data = None
    for keys in versions:
        data = make_task(replace(ITEM, answers=tuple(answer(key) for key in sorted(keys))), data)["data"]
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
    data = make_task(replace(ITEM, answers=(ANSWERS[0], answer("cy"))), make_task(ITEM)["data"])["data"]
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


def test_the_page_offers_every_flag() -> None:
    assert [flag for flag in FLAGS if f'alias="{flag}"' in label_config()] == list(FLAGS)

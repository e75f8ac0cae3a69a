"""Tasks and results without a server: escaping, versions, and what an annotation is read as."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from annotation.project import config_faults, guidelines_html, label_config
from annotation.tasks import FLAGS, alias, digest, make_task, read_result
from quit.review.items import ReviewAnswer, ReviewItem

EVIL = '<img src=x onerror="alert(1)">&amp;'


def _answer(key: str, **more) -> ReviewAnswer:
    return replace(ReviewAnswer(key, (key.title(),), 4, ("one",), False, 0.2, False), **more)


ITEM = ReviewItem(
    "q1",
    "dev",
    f"Who? {EVIL}",
    (EVIL,),
    (EVIL, "Two."),
    EVIL,
    (_answer("ada", verdict=True), _answer("ben", forms=(EVIL, "Ben"))),
)


def test_html_holds_no_markup_of_models_or_sources() -> None:
    data = make_task(ITEM)["data"]
    for html in [data["context_html"], *(candidate["html"] for candidate in data["candidates"])]:
        assert "<img" not in html
    assert "&lt;img" in data["context_html"] and "&amp;amp;" in data["context_html"]


def test_every_value_and_alias_is_unique() -> None:
    data = make_task(ITEM)["data"]
    for name in ("value", "alias"):
        assert len({candidate[name] for candidate in data["candidates"]}) == 2
    assert alias("q1", "ada") != alias("q2", "ada")


def test_the_digest_follows_everything_that_is_shown() -> None:
    same = replace(ITEM, stake=9.0, split="test")
    assert digest(same) == digest(ITEM)
    for changed in (
        replace(ITEM, question="Who?"),
        replace(ITEM, hints=("x",)),
        replace(ITEM, answers=ITEM.answers[:1]),
    ):
        assert digest(changed) != digest(ITEM)


@settings(deadline=None)
@given(st.lists(st.sets(st.sampled_from("abcd"), min_size=1), min_size=1, max_size=6))
def test_each_version_is_read_as_its_annotator_saw_it(versions: list[set[str]]) -> None:
    data = None
    for keys in versions:
        data = make_task(replace(ITEM, answers=tuple(_answer(key) for key in sorted(keys))), data)["data"]
    for number, keys in enumerate(versions, start=1):
        reading = read_result([{"from_name": "shown", "value": {"text": [str(number)]}}], data)
        assert {key for key, *_ in reading.answers} == keys


def test_what_a_person_said_is_read_whole() -> None:
    data = make_task(ITEM)["data"]
    entry = lambda name, **value: {"from_name": name, "to_name": "question", "value": value}  # noqa: E731
    reading = read_result(
        [
            entry("correct", choices=[alias("q1", "ben"), "nonsense"]),
            entry("missing", text=["  Grace ", "Grace", "..."]),
            entry("flags", choices=["offensive", "leak", "odd"]),
            entry("note", text=["one", "two"]),
            entry("new_field", choices=["x"]),
        ],
        data,
    )
    assert reading.answers == (("ada", "Ada", False, True), ("ben", EVIL, True, False))
    assert reading.missing == ("Grace", "...") and reading.flags == ("leak", "offensive") and reading.note == "one\ntwo"
    assert reading.unknown == ("nonsense", "odd", "new_field: {'choices': ['x']}")
    nothing = read_result([], data)
    assert [accepted for _, _, accepted, _ in nothing.answers] == [
        False,
        False,
    ]  # submitted with nothing ticked: none is correct


def test_data_that_are_not_ours_are_refused() -> None:
    with pytest.raises(KeyError):
        read_result([], {"question": "?"})


def test_the_configuration_is_ours_and_changes_that_matter_are_found() -> None:
    assert config_faults(label_config()) == []
    assert [flag for flag in FLAGS if f'alias="{flag}"' in label_config()] == list(FLAGS)
    assert config_faults(label_config().replace('name="note"', 'name="remark"')) == [
        "the field 'note' is missing",
        "there is a field 'remark' that quit does not know",
    ]
    assert config_faults(label_config().replace('choice="multiple"', 'choice="single"')) == [
        "the field 'correct' was changed",
        "the field 'flags' was changed",
    ]
    assert "not XML" in config_faults("<View>")[0]


def test_the_guidelines_stand_in_the_project_with_their_numbers() -> None:
    html = guidelines_html()
    assert "<p>5. Need to see" in html and "<strong>Tick every answer that is correct." in html and "<style" not in html

"""The annotator's page in a real browser: sixty answers, keys, the newest suggestions; and the pictures in the docs."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from annotation.project import push
from annotation.sync import pull
from quit.engine.workspace import Workspace
from quit.review.items import ReviewAnswer, ReviewItem
from quit.review.store import ReviewStore
from tests.annotation.browser import CHROMIUM, DRIVER, annotator

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="no chromium with chromedriver on this machine"),
]
IMAGES = Path(__file__).parents[2] / "docs" / "images"

NOTHING = "(None of these answers is correct)"
HINTS = (
    "She was born in Warsaw in 1867.",
    "Her notebooks are still radioactive.",
    "A unit of radioactivity is named after her family.",
    "She drove X-ray vans to the front in the First World War.",
    "One of her daughters won a Nobel Prize as well.",
)


def _sixty() -> ReviewItem:
    first = "Marie Albert Niels Erwin Max Lise Emmy Enrico Wolfgang Werner".split()
    names = [f"{name} {last}" for last in "Curie Einstein Bohr Schrödinger Planck Meitner".split() for name in first]
    answers = [
        ReviewAnswer(
            name.casefold(),
            (name, f"{name}.") if position % 7 == 0 else (name,),
            320 - 5 * position,
            ("reader-a", "reader-b"),
            position in (0, 4),
            None if position == 0 else 0.62 if position == 4 else 0.08,
            position == 0,
        )
        for position, name in enumerate(names)
    ]
    question = "Which physicist won two Nobel Prizes in two different sciences?"
    return ReviewItem("sixty", "dev", question, ("Marie Curie",), HINTS, " ".join(HINTS), tuple(answers))


def test_a_page_of_sixty_answers_by_mouse_and_keyboard(live, people, settings, tmp_path) -> None:
    from selenium.webdriver.common.keys import Keys

    store = ReviewStore(Workspace.create(tmp_path / "P"))
    server = live.client(settings)
    item = _sixty()
    project = push(store, server, settings, [item]).project
    swapped = tuple(
        replace(
            answer,
            verdict=False if answer.key == "max curie" else True if answer.key == "niels curie" else answer.verdict,
        )
        for answer in item.answers
    )
    assert push(store, server, settings, [replace(item, answers=swapped)]).changed == 1
    with annotator(live.account.url, tmp_path / "profile") as page:
        page.log_in("ben@example.org", "quit-test-1")
        page.open(project)
        _picture(page, "review-guidelines.png")
        page.dismiss_instructions()
        before = page.candidates()
        assert len(before) == 61 and next(iter(before)) == NOTHING
        # The newest suggestions are ticked, not those of the first version.
        assert {name for name, on in before.items() if on} == {"Marie Curie / Marie Curie.", "Niels Curie"}
        _picture(page, "review-60-answers.png")
        rows = page.driver.execute_script(
            "return [...document.querySelectorAll('.cands .lsf-choice')].filter(e => e.getBoundingClientRect().bottom "
            "< innerHeight).length"
        )
        assert rows >= 24, "too few answers fit on the screen"
        keys = page.keys()
        assert len(keys) == 33 and keys["1"] == NOTHING and keys["2"] == "Marie Curie / Marie Curie."
        page.press("2")
        page.until(lambda: page.candidates() == before | {keys["2"]: False})
        # No key does what no label says: as after each of these, what the next one that has a label does is all that
        # has changed.
        for key in {*"1234567890abcdefghijklmnopqrstuvwxyz"} - {*keys}:
            page.press(key)
        page.press("2")
        page.until(lambda: page.candidates() == before)
        assert page.driver.execute_script("return document.activeElement.tagName") == "BODY"
        page.press(next(key for key, name in keys.items() if name == "Albert Curie"))
        page.until(lambda: page.candidates() == before | {"Albert Curie": True})
        page.type("Anything to know, then Enter", "seen on the page")
        page.type("One answer, then Enter", "A <b>quite</b> new name")
        page.driver.execute_script("document.activeElement.blur()")  # in a text field keys write
        page.press(Keys.ALT, "m")
        page.press(Keys.CONTROL, Keys.ENTER)
        page.until(lambda: "No More Tasks" in page.driver.page_source)
    report = pull(store, server, settings)
    assert (report.versions, report.problems) == (1, [])
    rows = store.read().to_pylist()
    accepted = {row["answer_key"] for row in rows if row["kind"] == "answer" and row["correct"]}
    assert accepted == {"marie curie", "niels curie", "albert curie"}
    assert [row["text"] for row in rows if row["kind"] == "note"] == ["seen on the page"]
    assert [row["answer"] for row in rows if row["kind"] == "missing"] == ["A <b>quite</b> new name"]
    assert {row["shown"] for row in rows} == {2}
    assert [row["text"] for row in rows if row["kind"] == "flag"] == ["ambiguous"]


def test_a_blind_page_has_no_ticks_and_no_judge(live, people, settings, tmp_path) -> None:
    store = ReviewStore(Workspace.create(tmp_path / "P"))
    server = live.client(settings)
    blind = settings.model_copy(update={"review": settings.review.model_copy(update={"blind": 1.0})})
    items = [replace(_sixty(), question_id=f"q{number}", stake=3.0 - number) for number in range(3)]
    project = push(store, server, settings, items).project
    assert push(store, server, blind, items).blind == 3  # what the judge said before is not told either
    with annotator(live.account.url, tmp_path / "profile") as page:
        page.log_in("ben@example.org", "quit-test-1")
        page.open(project)
        page.dismiss_instructions()
        assert not any(page.candidates().values())
        html = page.driver.execute_script("return document.querySelector('.quit').outerHTML")
        assert "320 p." in html and "judge" not in html
        _picture(page, "review-blind.png")


def _picture(page, name: str) -> None:
    """Keep a screenshot for the docs where the variable QUIT_PICTURES asks for it."""
    if os.environ.get("QUIT_PICTURES"):
        IMAGES.mkdir(parents=True, exist_ok=True)
        page.shot(IMAGES / name)

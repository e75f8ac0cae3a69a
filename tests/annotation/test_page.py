"""The annotator's page in a real browser: what fits and can be read, sixty answers, keys, the newest suggestions; and
the pictures in the docs."""

import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from itertools import combinations, pairwise
from types import SimpleNamespace

import pytest
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.keys import Keys

from quit.annotation.client import connect
from quit.annotation.push import push
from quit.annotation.sync import pull
from quit.review.items import ReviewAnswer, ReviewItem
from tests.annotation.browser import CHROMIUM, DRIVER, Annotator, annotator
from tests.paths import ROOT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="no chromium with chromedriver on this machine"),
]
IMAGES = ROOT / "docs" / "images"

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
        ReviewAnswer(name.casefold(), (name,), 320 - 5 * position, ("a", "b"), False, 0.08, False)
        for position, name in enumerate(names)
    ]
    gold, fifth = answers[0], answers[4]
    answers[0] = replace(gold, forms=("Marie Curie", "Marie Curie."), verdict=True, probability=None, gold=True)
    answers[4] = replace(fifth, verdict=True, probability=0.62)
    question = "Which physicist won two Nobel Prizes in two different sciences?"
    return ReviewItem("sixty", "dev", question, ("Marie Curie",), HINTS, tuple(answers))


def _year(number: int) -> ReviewItem:
    """A question that says nothing without its hints, with every kind of verdict and a long answer."""
    gold = ReviewAnswer("1969", ("1969",), 234, ("a",), True, None, True)
    others = [
        ReviewAnswer("1963", ("1963",), 239, ("a",), False, 0.16, False, True, 0.6),
        ReviewAnswer("1970", ("1970",), 44, ("a",), None, None, False),
        ReviewAnswer("apollo", ("The year in which Apollo 11 landed, or so", "Apollo 11"), 1, ("b",), True, 0.7, False),
    ]
    return ReviewItem(f"year{number}", "dev", "Which year is meant?", ("1969",), HINTS, (gold, *others))


def _luminance(colour: Sequence[float]) -> float:
    """Relative luminance of an RGB colour (WCAG 2.2)."""
    shares = [part / 255 for part in colour]
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(first: Sequence[float], second: Sequence[float]) -> float:
    """Contrast ratio of two RGB colours (WCAG 2.2): 21 of black on white, 1 of equal ones."""
    dark, light = sorted((_luminance(first), _luminance(second)))
    return (light + 0.05) / (dark + 0.05)


def _overlap(one: Sequence[float], other: Sequence[float]) -> bool:
    """Whether two boxes (left, top, right, bottom) share more than a pixel's edge."""
    return all(min(one[i + 2], other[i + 2]) - max(one[i], other[i]) > 1 for i in (0, 1))


def test_an_element_that_the_page_has_replaced_is_looked_up_again() -> None:
    class Element:
        """Is replaced once, when it is used first."""

        text, replaced = "done", False
        is_displayed = lambda self: True  # noqa: E731

        def click(self, *_: str) -> None:
            replaced, Element.replaced = Element.replaced, True
            if not replaced:
                raise StaleElementReferenceException
            clicks.append(self)

        send_keys = click

    clicks: list[Element] = []
    focus = SimpleNamespace(active_element=Element())
    page = Annotator(SimpleNamespace(find_elements=lambda *_: [Element()], switch_to=focus), "")
    for act in (lambda: page.click("Update"), lambda: page.click_on("a"), lambda: page.press("x")):
        Element.replaced = False
        act()
    Element.replaced = False
    page.type("note", "text")
    assert len(clicks) == 3 + 2 and page.text("a") == "done"


def test_the_page_fits_every_width_and_can_be_read_in_both_colours(store, server, settings, page) -> None:
    assert (round(_contrast((0, 0, 0), (255, 255, 255))), _contrast((9, 9, 9), (9, 9, 9))) == (21, 1)
    page.resize(1280, 757)
    project = push(store, server, settings, [_year(number) for number in range(3)]).project
    page.open(project)
    [(_, top, _, bottom)] = page.boxes(".lsf-modal-ls__content")
    assert 0 <= top < bottom <= 757, "the instructions do not fit on the screen"
    page.dismiss_instructions()
    text = page.text(".quit")
    assert HINTS[0] in text and "A passage" not in text
    for words in (
        "1963 given 239 times · judge: wrong · 2nd judge: correct",
        "judge: unreadable",
        "1969 expected · given 234 times",
    ):
        assert words in text
    for position in (1, 2):
        page.until(lambda position=position: page.text(".lsf-current-task__task-count") == f"{position} of 3")
        if position == 1:
            page.press(Keys.CONTROL, Keys.ENTER)
    grounds = []
    for dark in (False, True):
        for width, height in ((390, 844), (768, 1024), (910, 700), (1280, 757)):
            page.resize(width, height)
            where = f"{width} pixels, {'dark' if dark else 'light'}"
            assert page.driver.execute_script("return document.documentElement.scrollWidth") <= width, where
            boxes = page.boxes(".quit *, .lsf-bottombar button, .lsf-menu-header button")
            assert len(boxes) > 60 and all(left >= 0 and right <= width for left, _, right, _ in boxes), where
            within = (" h3", " h4", " li", " .lsf-choice", " .ask", " .side input[type=text]")
            parts = page.boxes(", ".join(f".quit{place}" for place in within))
            assert len(parts) == 23 and not any(_overlap(*pair) for pair in combinations(parts, 2)), where
            answers = page.boxes(".cands .lsf-choice")
            assert all(above[0] == below[0] and above[3] <= below[1] for above, below in pairwise(answers)), where
            colours = page.colours(".quit, .lsf-bottombar__section")
            assert len(colours) > 30
            faint = [(text, _contrast(*pair)) for text, *pair in colours if _contrast(*pair) < 4.5]
            assert not faint, where
            grounds.append({_luminance(ground) > 0.4 for text, _, ground in colours if text not in ("Skip", "Submit")})
        page.set_system_colours("light" if dark else "dark")
        page.until(lambda dark=dark: (_luminance(page.colours(".quit")[0][1]) > 0.5) is not dark)
    assert grounds == [{True}] * 4 + [{False}] * 4, "a panel is of the other colours"
    keys, ends = page.boxes(".cands .lsf-hint"), page.boxes(".cands .lsf-choice__checkbox > span > span > span")
    assert len(keys) == len(ends) == 5
    gaps = [key[0] - end[2] for key, end in zip(keys, ends, strict=True)]
    assert min(gaps) >= 6, "a key is glued to the words before it"


def test_one_link_leads_a_phone_from_sign_up_to_a_task_that_nobody_else_gets_for_a_quarter_of_an_hour(
    store, server, settings, page, live, tmp_path
) -> None:
    project = push(store, server, settings, [_year(number) for number in range(2)]).project
    link = connect(live.folder, settings.review).invitation(project).removeprefix(page.url)
    with annotator(page.url, tmp_path / "browser") as phone:
        phone.resize(390, 844)
        for dark in (False, True):
            phone.set_system_colours("dark" if dark else "light")
            phone.driver.get(f"{page.url}{link}")
            assert phone.driver.execute_script("return document.documentElement.scrollWidth") == 390
            sides = [box[::2] for box in phone.boxes(".right input, .right button, .right a")]
            assert len(sides) == 4 and all(0 <= left < right <= 390 for left, right in sides)
            seen = phone.colours(".login_page_new_ui")
            assert {_luminance(ground) < 0.1 for text, _, ground in seen if text == "Email Address"} == {dark}
            assert [text for text, *pair in seen if _contrast(*pair) < 4.5] == []
            assert "You join a review" in phone.text("form") and "8 characters" in phone.text("form")
        phone.log_in("eve@example.org", "quit-test-1", link)
        phone.arrive()
        assert phone.text(".lsf-current-task__task-count") == "1 of 2"
        assert _luminance(phone.colours(".lsf-modal-ls__content")[0][2]) < 0.1, "not the system's colours"
        phone.driver.delete_all_cookies()
        phone.log_in("eve@example.org", "quit-test-1")  # without the link
        phone.arrive()
        phone.until(lambda: phone.run("focused", ".lsf-modal-ls__content"))
    database = live.folder / "reviews" / "server" / "data" / "label_studio.sqlite3"
    newest = "SELECT task_id, 86400 * (julianday(expire_at) - julianday()) FROM tasks_tasklock ORDER BY id DESC"
    with closing(sqlite3.connect(database, timeout=60, isolation_level=None)) as tables:
        task, seconds = tables.execute(newest).fetchone()
        assert 600 < seconds <= 900
        assert tables.execute("SELECT allow_newsletters FROM htx_user WHERE email LIKE 'eve@%'").fetchall() == [(0,)]
        page.open(project)
        page.dismiss_instructions()
        page.press(Keys.CONTROL, Keys.ENTER)
        page.until(lambda: "No More Tasks" in page.driver.page_source)
        page.resize(390, 844)
        page.open_instructions(project)
        assert page.driver.execute_script("return document.documentElement.scrollWidth") == 390
        boxes = ".lsf-modal-ls__content *"  # they move in
        page.until(lambda: all(0 <= left < right <= 390 for left, _, right, _ in page.boxes(boxes)))
        tables.execute("UPDATE tasks_tasklock SET expire_at = datetime('now', '-1 second') WHERE task_id = ?", [task])
    page.open(project)
    assert page.text(".lsf-current-task__task-count") == "1 of 1"


def test_the_list_of_tasks_shows_the_question_its_gold_answers_and_its_state(store, server, settings, page) -> None:
    page.resize(1280, 757)
    project = push(store, server, settings, [_year(0)]).project
    page.driver.get(f"{page.url}/projects/{project}/data")
    columns = "id completed_at total_annotations cancelled_annotations annotators data.question data.gold"
    assert page.until(lambda: page.run("columns")) == columns.split()
    assert all(right <= 1280 for _, _, right, _ in page.boxes(".lsf-table-head [data-id]"))


def test_a_page_of_sixty_answers_by_mouse_and_keyboard(store, server, settings, page) -> None:
    page.resize(1440, 900)
    item = _sixty()
    project = push(store, server, settings, [item]).project
    verdicts = {"max curie": False, "niels curie": True}
    swapped = tuple(replace(answer, verdict=verdicts.get(answer.key, answer.verdict)) for answer in item.answers)
    assert push(store, server, settings, [replace(item, answers=swapped)]).changed == 1
    page.open(project)
    _picture(page, "review-guidelines.png")
    page.dismiss_instructions()
    before = page.candidates()
    assert len(before) == 61 and next(iter(before)) == NOTHING
    # The newest suggestions are ticked, not those of the first version.
    assert {name for name, on in before.items() if on} == {"Marie Curie / Marie Curie.", "Niels Curie"}
    _picture(page, "review-60-answers.png")
    bottoms = [bottom for _, _, _, bottom in page.boxes(".cands .lsf-choice")]
    height = page.driver.execute_script("return innerHeight")
    assert sum(bottom < height for bottom in bottoms) >= 24, "too few answers fit on the screen"
    keys = page.run("keys")  # of every answer whose label shows one
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


def test_an_annotation_is_of_the_page_that_was_seen_whatever_a_push_has_sent(
    store, server, settings, page, monkeypatch
) -> None:
    """A push dies before it has sent the new page, whose ticks are there; then the old page's annotation is updated."""
    page.resize(1440, 900)
    first = _year(0)
    number = push(store, server, settings, [first]).project
    gold, *others = first.answers
    fourth_answer = ReviewAnswer("1971", ("1971",), 3, ("a",), True, 0.9, False)
    second = replace(first, gold_answers=("1969", "'69"), answers=(gold, *others[:2], fourth_answer))
    with monkeypatch.context() as dying:
        dying.setattr("quit.annotation.push._update", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            push(store, server, settings, [second])
    page.open(number)
    page.dismiss_instructions()
    assert "1971" not in page.candidates()
    page.press(Keys.CONTROL, Keys.ENTER)
    page.until(lambda: "No More Tasks" in page.driver.page_source)
    assert push(store, server, settings, [second]).changed == 1
    pull(store, server, settings)

    def verdicts(version: int) -> dict[str, bool]:
        rows = [row for row in store.read().to_pylist() if row["version"] == version and row["kind"] == "answer"]
        assert {row["shown"] for row in rows} == {version}
        return {row["answer_key"]: row["correct"] for row in rows}

    assert verdicts(1) == {"1969": True, "1963": False, "1970": False, "apollo": False}
    [task] = server.tasks(number, ["id"])
    page.driver.get(f"{page.url}/projects/{number}/data?task={task.id}")
    page.until(lambda: "1971" in page.candidates())
    page.type("Anything to know, then Enter", "seen again")
    page.click("Update")
    page.until(lambda: pull(store, server, settings).versions == 1)
    assert verdicts(2) == {"1969": True, "1963": False, "1970": False, "1971": True}  # now the page shows that tick


def test_a_blind_page_has_no_ticks_and_no_judge(store, server, settings, page) -> None:
    page.resize(1440, 900)
    blind = settings.model_copy(update={"review": settings.review.model_copy(update={"blind": 1.0})})
    items = [replace(_sixty(), question_id=f"q{number}", stake=3.0 - number) for number in range(3)]
    project = push(store, server, settings, items).project
    assert push(store, server, blind, items).blind == 3  # what the judge said before is not told either
    page.open(project)
    page.dismiss_instructions()
    assert not any(page.candidates().values())
    html = page.driver.execute_script("return document.querySelector('.quit').outerHTML")
    assert "given 320 times" in html and "judge" not in html
    _picture(page, "review-blind.png")


def _picture(page, name: str) -> None:
    """Keep a screenshot for the docs where the variable QUIT_PICTURES asks for it."""
    if os.environ.get("QUIT_PICTURES"):
        IMAGES.mkdir(parents=True, exist_ok=True)
        page.driver.save_screenshot(str(IMAGES / name))

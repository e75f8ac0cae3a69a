"""What the report and the card say of people: blind pages and others apart, and what annotators say of themselves."""

import json
from pathlib import Path

import pytest

from quit import contracts
from quit.errors import InputError
from quit.release.create import hashed_people
from quit.review.figures import flags
from quit.review.people import absent_people, load_people, verification
from quit.review.report import pieces
from quit.review.status import review_status
from quit.review.store import ReviewStore
from quit.settings import Review
from quit.stages.labelling.verdicts import decide, live_reviews
from tests.report import tiny
from tests.rows import write_lines
from tests.stages.labelling.test_verdicts import said


def _by(annotator: str, number: int, question: str, seconds: float | None, blind: bool | None, **answers: bool) -> list:
    rows = said(annotator, number, question=question, **answers)
    return [{**row, "blind": blind, "lead_seconds": seconds} for row in rows]


def _live():
    """Two people on two blind questions, one more on a third with the judge shown (pages of before say nothing)."""
    rows = [
        *_by("ada", 1, "q1", 10.0, True, x=True, y=False),
        *_by("ben", 2, "q1", 30.0, True, x=True, y=True),
        *_by("ada", 3, "q2", 20.0, True, x=False, y=False),
        *_by("cy", 4, "q3", 4.0, None, x=True),
        *_by("cy", 5, "q4", None, False, x=True),
    ]
    return live_reviews(contracts.table("reviews").from_rows(rows))


def test_blind_and_other_verdicts_are_counted_apart(tmp_path: Path) -> None:
    controls = tmp_path / "controls.jsonl"
    controls.write_text('{"question_id": "q1", "correct": ["x"], "incorrect": ["y"]}\n', encoding="utf-8")
    facts = verification(_live(), Review(controls=str(controls)))
    assert (facts["annotators"], facts["annotations"], facts["questions"], facts["people"]) == (3, 5, 4, [])
    blind, shown = facts["kinds"]
    # Worked out by hand. Alpha: of four values (x: yes yes, y: no yes) three are yes; observed disagreement 1/2,
    # expected 1/2.
    counts = {"annotators": 2, "annotations": 3, "questions": 2, "twice": 1, "answers": 6, "items": 2}
    agreement = {"seconds": 20.0, "alike": 0.5, "alpha": 0.0, "controls": 4, "controls_right": 3}
    assert blind == {"blind": True, **counts, **agreement}
    assert (shown["blind"], shown["annotators"], shown["annotations"], shown["seconds"]) == (False, 1, 2, 4.0)
    assert (shown["alike"], shown["alpha"], shown["items"], shown["controls"]) == (None, None, 0, 0)


def test_a_release_counts_a_person_of_two_projects_once() -> None:
    rows = [{**row, "project": row["question_id"]} for row in _live().to_pylist()]
    live = contracts.table("reviews").from_rows(rows)
    assert len({*hashed_people(live)}) == verification(live, Review())["annotators"] == 3
    assert hashed_people(live)[::-1] != hashed_people(live) == hashed_people(live.take([*range(len(live))][::-1]))
    other = contracts.table("reviews").from_rows([{**row, "project": "another key"} for row in rows])
    assert not {*hashed_people(live)} & {*hashed_people(other)}


def test_flags_are_counted_by_question_and_by_the_rule() -> None:
    """Of three reviewed questions two people flag q1, one of two flags q2 (a tie stays open); nobody flags q3."""
    rows = [
        *said("ada", 1, question="q1", flag_hint_false=True),
        *said("ben", 2, question="q1", flag_hint_false=True),
        *said("ada", 3, question="q2", flag_hint_false=True, flag_leak=True),
        *said("ben", 4, question="q2", flag_leak=True),
        *said("cy", 5, question="q3", x=True),
    ]
    live = live_reviews(contracts.table("reviews").from_rows(rows))
    decisions = decide(live, Review())
    counts = {row["flag"]: (row["questions"], row["agreed"], row["share"]) for row in flags(live, decisions)}
    none = (0, 0, 0.0)
    assert counts == {
        **{"leak": (1, 1, 1 / 3), "hint_false": (2, 1, 2 / 3)},
        **{"gold_wrong": none, "ambiguous": none, "offensive": none},
    }
    assert flags(live.slice(0, 0), decisions.slice(0, 0)) == []


def test_people_are_listed_as_in_table_9_without_names(tmp_path: Path) -> None:
    ben = {"annotator": "ben", "gender": "Male", "age": 32, "education": "PhD"}
    ada = {"annotator": "Ada", "gender": "Female", "age": "19", "education": "High school"}
    lines = [ben, ada, {"annotator": "not here", "age": 50}, {"annotator": "cy"}]
    path = write_lines(tmp_path / "people.jsonl", lines)
    facts = verification(_live(), Review(people=str(path)))
    assert facts["people"] == [
        {"evaluator": 1, "gender": "Female", "age": "19", "education": "High school"},
        {"evaluator": 2, "gender": "Male", "age": "32", "education": "PhD"},
        {"evaluator": 3, "gender": None, "age": None, "education": None},
    ]
    assert not any(name in json.dumps(facts) for name in ("ada", "ben", '"cy"'))


def test_a_person_in_other_letters_has_one_line(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "people.jsonl", [{"annotator": "Ann@x.org"}, {"annotator": "ann@x.org"}])
    with pytest.raises(InputError, match="line 2: 'ann@x.org' has a line already"):
        load_people(path)


def test_people_whom_settings_name_are_told_where_no_annotation_is_theirs(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "people.jsonl", [{"annotator": "BEN"}, {"annotator": "bem"}])
    settings = Review(adjudication="adjudicator", adjudicator="Chef@example.org", people=str(path))
    adjudicator, people = absent_people(settings, {"ada", "ben"})
    assert "review.adjudicator is Chef@example.org, who has no annotation" in adjudicator
    assert "review.people names bem, and" in people
    assert absent_people(settings, {"chef@example.org", "ben", "bem"}) == []
    assert absent_people(settings, set()) == []  # nobody has begun
    assert absent_people(Review(adjudicator="chef@example.org"), {"ada"}) == []  # the majority decides


def test_files_that_are_gone_are_left_out_and_the_log_says_so(tmp_path: Path, caplog) -> None:
    settings = Review(people=str(tmp_path / "people.jsonl"), controls=str(tmp_path / "controls.jsonl"))
    assert verification(_live(), settings) == verification(_live(), Review())
    assert "review.people" in caplog.text and "review.controls" in caplog.text and len(caplog.records) == 1
    opened = tiny.workspace(tmp_path / "W")
    assert review_status(opened, settings) == review_status(opened, Review())
    assert "review.controls" in caplog.records[1].message and len(caplog.records) == 2


def test_control_questions_are_told_apart_from_what_is_left_to_do(tmp_path: Path) -> None:
    workspace, path = tiny.workspace(tmp_path / "W"), tmp_path / "controls.jsonl"
    store = ReviewStore(workspace)
    store.set_project({"key": "k", "url": "http://labels", "id": 3, "tasks": ["q1", "q2", "q3"]})
    store.set_sync({"project": ["k", 3], "tasks": 3, "done": 2})
    write_lines(path, [{"question_id": question, "correct": ["x"]} for question in ("q1", "q9")])
    first, *_ = pieces(review_status(workspace, Review(controls=str(path))))
    assert "2 of 3 tasks done, 1 open (among them 1 control question, open to everyone), as of" in first
    assert "2 of 3 tasks done, 1 open, as of" in pieces(review_status(workspace, Review()))[0]


def test_flags_on_hints_that_have_changed_are_told(tmp_path: Path) -> None:
    workspace = tiny.workspace(tmp_path / "W")
    header = next(row for row in tiny.reviews() if row["kind"] == "annotation")
    before = {**header, "annotation": 99, "review_id": "r99", "annotator": "cy", "content_with_hints": "of other hints"}
    flags = [{**before, "kind": "flag", "text": flag} for flag in ("leak", "hint_false", "ambiguous")]
    ReviewStore(workspace).append([before, *flags])
    status = review_status(workspace, Review())
    assert (status["reviews"]["set_aside"], status["reviews"]["set_aside_flags"]) == (0, 2)
    assert "Set aside: 2 flags on hints that have changed. They count again when these come back." in pieces(status)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"gender": "Male"}', "line 1: .*'annotator' must be a text"),
        ('{"annotator": "a", "age": [3]}', "line 1: 'age' must be a text or a whole number"),
        ('{"annotator": "a", "sex": "f"}', "line 1: 'sex' is no key"),
        ('{"annotator": "a"}\n{"annotator": "a"}', "line 2: 'a' has a line already"),
    ],
)
def test_a_bad_file_of_people_is_said_with_its_line(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "people.jsonl"
    path.write_text(line + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=message):
        load_people(path)

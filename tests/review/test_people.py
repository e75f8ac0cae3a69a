"""What people say of themselves, and what a card says of them."""

import json
from pathlib import Path

import pytest

from quit import contracts
from quit.errors import InputError
from quit.release.create import hashed_people
from quit.review.people import absent_people, load_people, verification
from quit.review.status import review_status
from quit.settings import Review
from tests.report import tiny
from tests.review.test_figures import live_rows
from tests.rows import write_lines


def test_a_release_counts_a_person_of_two_projects_once() -> None:
    rows = [{**row, "project": row["question_id"]} for row in live_rows().to_pylist()]
    live = contracts.table("reviews").from_rows(rows)
    assert len({*hashed_people(live)}) == verification(live, Review())["annotators"] == 3
    assert hashed_people(live)[::-1] != hashed_people(live) == hashed_people(live.take([*range(len(live))][::-1]))
    other = contracts.table("reviews").from_rows([{**row, "project": "another key"} for row in rows])
    assert not {*hashed_people(live)} & {*hashed_people(other)}


def test_people_are_listed_as_in_table_9_without_names(tmp_path: Path) -> None:
    ben = {"annotator": "ben", "gender": "Male", "age": 32, "education": "PhD"}
    ada = {"annotator": "Ada", "gender": "Female", "age": "19", "education": "High school"}
    lines = [ben, ada, {"annotator": "not here", "age": 50}, {"annotator": "cy"}]
    path = write_lines(tmp_path / "people.jsonl", lines)
    facts = verification(live_rows(), Review(people=str(path)))
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
    assert verification(live_rows(), settings) == verification(live_rows(), Review())
    assert "review.people" in caplog.text and "review.controls" in caplog.text and len(caplog.records) == 1
    opened = tiny.workspace(tmp_path / "W")
    assert review_status(opened, settings) == review_status(opened, Review())
    assert "review.controls" in caplog.records[1].message and len(caplog.records) == 2


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

"""MuSiQue's format: references, support, faults."""

import json
from pathlib import Path

import pytest

from quit.errors import InputError
from quit.qa.corpora.musique import read, resolve
from tests.qa.corpora.worlds import musique_record
from tests.rows import write_lines


@pytest.mark.parametrize(
    ("question", "answers", "expected"),
    [
        ("Did #2 meet #1 in #2?", ["Ann", "Bob"], "Did Bob meet Ann in Bob?"),
        ("Who had a #1 hit?", [], "Who had a #1 hit?"),
        ("#3 of #1", ["Ann"], "#3 of Ann"),
        ("#1 >> x", [r"a\1b"], r"a\1b >> x"),
    ],
)
def test_references_are_replaced_by_earlier_answers(question: str, answers: list[str], expected: str) -> None:
    assert resolve(question, answers) == expected


def test_a_step_without_support_has_no_relevant_document(tmp_path: Path) -> None:
    record = musique_record("2hop__1", [("A", "one"), ("B", "two")], [0, 1])
    record["question_decomposition"][1]["paragraph_support_idx"] = None
    [parsed] = read(write_lines(tmp_path / "m.jsonl", [record]))
    assert [query.relevant for query in parsed.queries] == [((0, 1), (1, 1)), ((0, 1),), ()]
    assert [(query.kind, query.hop) for query in parsed.queries] == [("2hop", None), ("2hop", 1), ("2hop", 2)]
    [parsed] = read(write_lines(tmp_path / "m.jsonl", [{**record, "id": "plain", "answer_aliases": ["Zwei"]}]))
    assert parsed.queries[0].kind is None and parsed.queries[0].answers[1:] == ("Zwei",)
    [parsed] = read(tmp_path / "m.jsonl", aliases=False)
    assert parsed.queries[0].answers == ("a1",)


def test_numbers_of_a_data_frame_are_whole(tmp_path: Path) -> None:
    """A column with gaps has decimals."""
    record = musique_record("2hop__1", [("A", "one"), ("B", "two")], [0, 1])
    frame = json.loads(json.dumps(record))
    for row, paragraph in enumerate(frame["paragraphs"]):
        paragraph["idx"] = float(row)
    frame["question_decomposition"][0]["paragraph_support_idx"] = 0.0
    plain, of_frame = ([*read(write_lines(tmp_path / "m.jsonl", [one]))] for one in (record, frame))
    assert plain == of_frame


def test_white_space_and_unicode_are_cleaned_and_nothing_else(tmp_path: Path) -> None:
    record = musique_record("2hop__1", [("Cafe\u0301 \n", "a\u00a0 b  &amp; c"), ("B", "two")], [0, 1])
    [parsed] = read(write_lines(tmp_path / "m.jsonl", [record]))
    assert (parsed.documents[0].title, parsed.documents[0].text) == ("Café", "a b &amp; c")


def test_a_file_without_a_record_is_an_error(tmp_path: Path) -> None:
    message = r"no usable record \(missing_field 1\).*line 1: Field 'paragraphs' is missing"
    with pytest.raises(InputError, match=message):
        list(read(write_lines(tmp_path / "m.jsonl", [{"id": "x"}])))

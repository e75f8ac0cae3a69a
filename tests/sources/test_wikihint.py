"""The WikiHint reader: the real file and other forms."""

import json

import pytest

from quit.sources import wikihint
from tests.sources.records import good, read


def test_the_real_file(data):
    path = data / "wikihint" / "test_first50.json"
    raw, records = json.loads(path.read_text("utf-8")), list(wikihint.read(path))
    questions = [record.question for record in records]
    assert len(questions) == 50 and not [reject for record in records for reject in record.rejects]
    for question, record in zip(questions, raw, strict=True):
        assert len(question.hints) == 5
        assert sorted(hint.rank for hint in question.hints) == [1, 2, 3, 4, 5]
        assert [hint.rank for hint in question.hints] == [int(hint["rank"]) for hint in record["hints"]]
        assert [hint.convergence for hint in question.hints] == [h["metrics"]["convergence"] for h in record["hints"]]
        assert all(hint.url.startswith("https://") and hint.scores is None for hint in question.hints)
        assert question.answers == (record["answer"]["answer"],)
        assert question.candidates[-1] == question.answers[0]
    texts = [hint.text for question in questions for hint in question.hints]
    assert "This character is the loyal friend and first mate of Han Solo." in texts
    assert 'The motto of the club is "Més que un club"' in texts
    assert questions[0].record_id == "test_1" and questions[0].difficulty == "Easy"


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"question": "Name the deity.", "answer": "Cthulhu", "hints": ["It sleeps."]},
        {"answer": ["Cthulhu", {"answer": "cthulhu"}]},
        {"answer": None, "answers": [{"answer": "Cthulhu"}]},
    ],
)
def test_forms_of_a_record(tmp_path, changes):
    (record,) = read("wikihint", tmp_path, [good("wikihint", **changes)])
    assert record.question.question == "Name the deity." and record.question.answers == ("Cthulhu",)
    assert record.question.hints[0].text == "It sleeps."


def test_a_hint_object_without_text_is_an_empty_hint(tmp_path):
    hints = [{"rank": "1"}, {"hint": "It sleeps.", "rank": ""}]
    (record,) = read("wikihint", tmp_path, [good("wikihint", hints=hints)])
    assert [reject.reason for reject in record.rejects] == ["empty_hint"]
    assert record.question.hints[0].rank is None

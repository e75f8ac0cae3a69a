"""The WikiHint reader: the real file and other forms."""

import json

import pytest

from quit.sources import wikihint


def good(number=1, **changes):
    return {
        "id": f"test_{number}",
        "question": {
            "question": "Name the deity.",
            "question_type": {"major": "HUM:HUMAN", "minor": "ind:Individual"},
            "difficulty": "Easy",
            "candidate_answers": ["Hastur", "Cthulhu"],
        },
        "answer": {"answer": "Cthulhu"},
        "hints": [{"hint": "It\xa0sleeps.", "source": "https://x.org", "rank": "2", "metrics": {"convergence": 0.5}}],
    } | changes


def read(tmp_path, value):
    path = tmp_path / "w.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    return list(wikihint.read(path))


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
    (record,) = read(tmp_path, [good(**changes)])
    assert record.question.question == "Name the deity." and record.question.answers == ("Cthulhu",)
    assert record.question.hints[0].text == "It sleeps."


def test_an_object_of_records_and_of_splits(tmp_path):
    assert [r.question.record_id for r in read(tmp_path, {"a": good(1), "b": good(2)})] == ["test_1", "test_2"]
    keyed = {key: {k: v for k, v in good().items() if k != "id"} for key in ("a", "b")}
    assert [record.question.record_id for record in read(tmp_path, keyed)] == ["a", "b"]
    splits = read(tmp_path, {"train": [good(1)], "test": [good(1)]})
    assert [record.question.file for record in splits] == ["w.json#train", "w.json#test"]
    assert [record.question.file for record in read(tmp_path, {"data": [good(1)]})] == ["w.json"]


@pytest.mark.parametrize(
    ("changes", "reason", "words"),
    [
        ({"question": {"qestion": "Who?"}}, "missing_field", "did you mean 'question'"),
        ({"question": {}}, "missing_field", "'question.question'"),
        ({"question": 3}, "wrong_type", "'question.question'"),
        ({"answer": {}}, "missing_field", "'answer.answer'"),
        ({"answer": {"answer": " "}}, "no_answer", "no answer"),
        ({"hints": {"hint": "x"}}, "wrong_type", "'hints'"),
        ({"hints": [{"hint": "It sleeps.", "rank": "first"}]}, "wrong_type", "hints[0].rank"),
        ({"hints": [{"hint": "It sleeps.", "rank": "1e9"}]}, "bad_value", "hints[0].rank"),
        ({"hints": [{"hint": "It sleeps.", "metrics": [1]}]}, "wrong_type", "hints[0].metrics"),
        ({"hints": ["x"] * 1001}, "too_many", "1001"),
    ],
)
def test_a_malformed_record_is_rejected(tmp_path, changes, reason, words):
    bad, fine = read(tmp_path, [good(**changes), good(2)])
    assert bad.question is None and fine.question
    assert bad.rejects[0].reason == reason and words in bad.rejects[0].detail and bad.rejects[0].record_id == "test_1"


def test_a_hint_object_without_text_is_an_empty_hint(tmp_path):
    (record,) = read(tmp_path, [good(hints=[{"rank": "1"}, {"hint": "It sleeps.", "rank": ""}])])
    assert [reject.reason for reject in record.rejects] == ["empty_hint"]
    assert record.question.hints[0].rank is None

"""The TriviaHG reader: the real files, and records that are broken in every way."""

import json

import pytest

from quit.errors import InputError
from quit.sources import triviahg


def good(number=0, **changes):
    record = {
        "Q_ID": f"q{number}",
        "Question": f"Which country is number {number}?",
        "Hints": ["It is an island. [^1^]", "It is far away."],
        "ExactAnswer": ["Fiji", "Fiji", " FIJI "],
        "MajorType": "LOC:LOCATION",
        "MinorType": "country:Country",
        "Candidates_Answers": ["Samoa", "Tonga", "Fiji"],
        "Scores": [{"Samoa": 1, "Tonga": 0, "Fiji": 1}, {"Samoa": 1, "Tonga": 1, "Fiji": 1}],
        "Convergence": [0.67, 0.33],
        "Exact_Answer_Popularity": {"Normalized": 1.0, "Category": "Easy"},
    } | changes
    return {key: value for key, value in record.items() if value is not ...}


def read(tmp_path, value, name="t.json"):
    path = tmp_path / name
    text = value if isinstance(value, str | bytes) else json.dumps(value)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return list(triviahg.read(path))


@pytest.mark.parametrize(
    ("name", "hints", "few"), [("Copilot", 970, 0), ("GPT_3.5", 898, 4), ("LLaMA_7b_Finetuned", 923, 5)]
)
def test_real_files(data, name, hints, few):
    path = data / "triviahg" / f"{name}.json"
    raw, records = json.loads(path.read_text("utf-8")), list(triviahg.read(path))
    questions = [record.question for record in records]
    assert len(records) == 100 and not [reject for record in records for reject in record.rejects]
    assert sum(len(question.hints) for question in questions) == hints
    assert sum(len(question.hints) < 5 for question in questions) == few
    for question, record in zip(questions, raw, strict=True):
        assert question.record_id == record["Q_ID"] and raw[question.position] is record
        assert [hint.convergence for hint in question.hints] == record["Convergence"]
        assert [list(hint.scores.values()) for hint in question.hints] == [list(s.values()) for s in record["Scores"]]
        assert [list(hint.scores) for hint in question.hints] == [list(s) for s in record["Scores"]]
        assert list(question.candidates)[-1].casefold() == record["Candidates_Answers"][-1].casefold()


def test_a_real_record_in_full(data):
    question = next(triviahg.read(data / "triviahg" / "Copilot.json")).question
    assert question.question == "Which country hosted the 2000 Summer Olympic Games?"
    assert question.answers == ("Australia",)
    assert (question.coarse, question.fine, question.difficulty) == ("LOC:LOCATION", "country:Country", "Easy")
    assert (question.source, question.file, question.position) == ("triviahg", "Copilot.json", 0)
    assert question.hints[2].text == "It is both a country and a continent."
    assert len(question.candidates) == 19 and len(question.hints) == 9


def test_a_good_record(tmp_path):
    (record,) = read(tmp_path, [good()])
    assert record.rejects == ()
    assert record.question.answers == ("Fiji",)
    assert record.question.hints[0].text == "It is an island."
    assert record.question.hints[0].scores == {"Samoa": 1, "Tonga": 0, "Fiji": 1}
    assert record.question.hints[1].convergence == 0.33


@pytest.mark.parametrize(
    ("changes", "reason", "words"),
    [
        ({"Hints": ...}, "missing_field", "'Hints'"),
        ({"ExactAnswer": ...}, "missing_field", "'ExactAnswer'"),
        ({"Q_ID": ...}, "missing_field", "'Q_ID'"),
        ({"Q_ID": "  "}, "missing_field", "blank"),
        ({"Question": 7}, "wrong_type", "the number 7"),
        ({"Hints": "one text"}, "wrong_type", "a list of texts"),
        ({"Hints": ["one"]}, "lengths_differ", "'Scores' has 2 entries, but 'Hints' has 1"),
        ({"Convergence": [0.5]}, "lengths_differ", "'Convergence'"),
        ({"Scores": [[1], [0]]}, "wrong_type", "Scores[0]"),
        ({"Scores": [{"Fiji": 2}, {}]}, "bad_value", "'Fiji' has the number 2"),
        ({"Convergence": [1.5, 0]}, "bad_value", "Convergence[0]"),
        ({"Convergence": ["high", 0]}, "wrong_type", "the text 'high'"),
        ({"ExactAnswer": ["", " "]}, "no_answer", "no answer"),
        ({"Candidates_Answers": 3}, "wrong_type", "'Candidates_Answers'"),
        ({"MajorType": 3}, "wrong_type", "'MajorType'"),
    ],
)
def test_a_malformed_record_is_rejected_with_reason_and_the_run_goes_on(tmp_path, changes, reason, words):
    bad, fine = read(tmp_path, [good(1, **changes), good(2)])
    assert bad.question is None and fine.question is not None
    (reject,) = bad.rejects
    assert (reject.stage, reject.kind, reject.reason) == ("collect", "record", reason)
    assert words in reject.detail and reject.detail.startswith("record 1: ")
    assert (reject.source, reject.file, reject.position) == ("triviahg", "t.json", 0)
    assert len(reject.detail) < 400


@pytest.mark.parametrize("value", [None, 3, "text", [], True])
def test_what_is_no_object_is_rejected(tmp_path, value):
    bad, fine = read(tmp_path, [value, good()])
    assert bad.rejects[0].reason == "not_an_object" and fine.question


def test_hints_that_are_none_are_rejected_one_by_one_and_values_stay_with_their_hints(tmp_path):
    hints = ["", "Sure, here are ten hints:", None, 5, "It is far away."]
    record = good(Hints=hints, Scores=[{"Fiji": 1}] * 4 + [{"Fiji": 0}], Convergence=[0.1, 0.2, 0.3, 0.4, 0.5])
    (parsed,) = read(tmp_path, [record])
    assert [hint.text for hint in parsed.question.hints] == ["It is far away."]
    assert parsed.question.hints[0].convergence == 0.5 and parsed.question.hints[0].scores == {"Fiji": 0}
    assert [(reject.kind, reject.reason) for reject in parsed.rejects] == [
        ("hint", "empty_hint"), ("hint", "boilerplate_hint"), ("hint", "empty_hint"), ("hint", "wrong_type"),
    ]  # fmt: skip
    assert "Hint 2 of the record" in parsed.rejects[1].detail and parsed.rejects[1].record_id == "q0"


def test_optional_fields_may_be_missing_and_nan_is_no_convergence(tmp_path):
    names = ("Scores", "MajorType", "MinorType", "Candidates_Answers", "Exact_Answer_Popularity")
    record = good(Convergence=[float("nan"), None], **dict.fromkeys(names, ...))
    (parsed,) = read(tmp_path, [record])
    assert [hint.convergence for hint in parsed.question.hints] == [None, None]
    assert parsed.question.coarse is None and parsed.question.candidates == ()


@pytest.mark.parametrize("shape", ["object by id", "splits", "lines", "one record"])
def test_other_forms(tmp_path, shape):
    records = [good(0), good(1)]
    value = {
        "object by id": {record["Q_ID"]: {k: v for k, v in record.items() if k != "Q_ID"} for record in records},
        "splits": {"train": records[:1], "test": records[1:]},
        "lines": "\n".join(json.dumps(record) for record in records) + "\n{broken\n",
        "one record": good(0),
    }[shape]
    parsed = read(tmp_path, value)
    ids = [record.question.record_id for record in parsed if record.question]
    assert ids == (["q0"] if shape == "one record" else ["q0", "q1"])
    if shape == "splits":
        assert [record.question.file for record in parsed] == ["t.json#train", "t.json#test"]
    if shape == "lines":
        assert parsed[2].rejects[0].reason == "not_json" and "line 3" in parsed[2].rejects[0].detail


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("no json at all", "is not JSON"),
        ("", "is empty"),
        (b"\xff\xfe[\x00", "not UTF-8"),
        (json.dumps([good(0), good(1)])[:-30], "is it cut off?"),
        (json.dumps([good(0)]) + "x", "after the end of the array"),
        ("[{} {}]", "expected ',' or ']'"),
        ("3", "the number 3"),
        ("[]", "holds no record"),
        ('[{"Q_ID": 1}, 2]', "holds no usable record (missing_field 1, not_an_object 1)"),
        ("[" * 100_000, "nesting too deep"),
        ('[{"Q_ID": ' + "9" * 5000 + "}]", "a number too long"),
    ],
)
def test_a_file_that_cannot_be_used_is_an_error(tmp_path, text, words):
    with pytest.raises(InputError) as error:
        read(tmp_path, text)
    assert words in str(error.value) and "t.json" in str(error.value) and "\n" not in str(error.value)


def test_quotes_from_input_are_short_and_escaped(tmp_path):
    bad, _ = read(tmp_path, [good(Convergence=["\x1b[31m" + "x" * 5000, 0]), good(1)])
    assert len(bad.rejects[0].detail) < 250 and "\x1b" not in bad.rejects[0].detail

"""The TriviaHG reader: the real files, and other forms."""

import json

import pytest

from quit.sources import triviahg
from tests.sources.records import good, read


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


def test_hints_that_are_none_are_rejected_one_by_one_and_values_stay_with_their_hints(tmp_path):
    hints = ["", "Sure, here are ten hints:", None, 5, "It is far away."]
    scores = [{"Fiji": 1}] * 4 + [{"Fiji": 0}]
    record = good("triviahg", Hints=hints, Scores=scores, Convergence=[0.1, 0.2, 0.3, 0.4, 0.5])
    (parsed,) = read("triviahg", tmp_path, [record])
    assert parsed.question.answers == ("Fiji",), "each answer once"
    assert [(one.text, one.convergence, one.scores) for one in parsed.question.hints] == [
        ("It is far away.", 0.5, {"Fiji": 0})
    ]
    reasons = ["empty_hint", "boilerplate_hint", "empty_hint", "wrong_type"]
    assert [(reject.kind, reject.reason) for reject in parsed.rejects] == [("hint", reason) for reason in reasons]
    assert "Hint 2 of the record" in parsed.rejects[1].detail and parsed.rejects[1].record_id == "q1"


def test_an_id_may_be_the_records_key_and_urls_count_where_there_is_one_a_hint():
    url = "https://a.example"
    for urls, first in (([url, None], url), ([url, None, url], None), ({"a": url}, None)):
        parsed = triviahg.parse(good("triviahg", Hints_Sources=urls), "key")
        assert [hint.url for hint in parsed.hints] == [first, None] and parsed.record_id == "q1"
    assert triviahg.parse(good("triviahg", Q_ID=...), "key").record_id == "key"


def test_optional_fields_may_be_missing_and_nan_is_no_convergence(tmp_path):
    names = ("Scores", "MajorType", "MinorType", "Candidates_Answers", "Exact_Answer_Popularity")
    record = good("triviahg", Convergence=[float("nan"), None], **dict.fromkeys(names, ...))
    (parsed,) = read("triviahg", tmp_path, [record])
    assert [hint.convergence for hint in parsed.question.hints] == [None, None]
    assert parsed.question.coarse is None and parsed.question.candidates == ()

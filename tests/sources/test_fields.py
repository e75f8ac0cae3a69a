"""Records with a fault in a field, of every kind that is JSON: each is left out with its reason, and costs no other."""

from typing import Any

import pytest

from tests.sources.records import good, metric, read_two

BAD: dict[str, list[tuple[dict[str, Any], str, str]]] = {
    "triviahg": [
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
    "wikihint": [
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
    "hinteval": [
        ({"answers": []}, "no_answer", ""),
        ({"answers": [{}]}, "missing_field", ""),
        ({"answers": "Vienna"}, "wrong_type", ""),
        ({"question": "What?"}, "wrong_type", ""),
        ({"hints": None}, "missing_field", ""),
        ({"hints": [{"hint": "x y", "metrics": {"convergence-nn-x": metric("?")}}]}, "wrong_type", ""),
    ],
    "jsonl": [
        ({"id": ...}, "missing_field", "'id'"),
        ({"id": True}, "wrong_type", "'id'"),
        ({"question": ...}, "missing_field", "'question'"),
        ({"question": ""}, "no_question", "blank"),
        ({"question": ["x"]}, "wrong_type", "a list of 1"),
        ({"answers": ..., "anwsers": ["Mars"]}, "missing_field", "'anwsers': did you mean 'answers'?"),
        ({"answers": ..., "answer": "Mars"}, "missing_field", "'answer': did you mean 'answers'?"),
        ({"answers": ..., "Answers": "Mars"}, "missing_field", "'Answers': did you mean 'answers'?"),
        ({"answers": []}, "no_answer", "no answer"),
        ({"answers": ""}, "no_answer", "no answer"),
        ({"answers": [1969]}, "wrong_type", "the number 1969"),
        ({"hints": "one"}, "wrong_type", "'hints'"),
        ({"hints": ...}, "missing_field", "'hints'"),
        ({"hints": [{"hnt": "x"}]}, "missing_field", "did you mean 'hint'"),
        ({"hints": [{"hint": "x y z", "rank": 0}]}, "bad_value", "hints[0].rank"),
        ({"hints": [{"hint": "x y z", "rank": 1.5}]}, "bad_value", "hints[0].rank"),
        ({"hints": [{"hint": "x y z", "convergence": -0.1}]}, "bad_value", "hints[0].convergence"),
        ({"hints": [{"hint": "x y z", "scores": {"a": 0.5}}]}, "bad_value", "'a' has the number 0.5"),
        ({"hints": [{"hint": "x y z", "scores": [1]}]}, "wrong_type", "hints[0].scores"),
        ({"hints": [{"hint": "x y z", "url": 3}]}, "wrong_type", "hints[0].url"),
        ({"candidates": "Mars and Venus", "difficulty": 3}, "wrong_type", "'difficulty'"),
        ({"candidates": [1]}, "wrong_type", "'candidates'"),
        ({"question_type": "LOC"}, "wrong_type", "'question_type'"),
    ],
}


@pytest.mark.parametrize(("kind", "fault"), [(kind, fault) for kind in BAD for fault in BAD[kind]])
def test_a_malformed_record_is_rejected_with_its_place_and_costs_no_other(tmp_path, kind: str, fault: tuple) -> None:
    changes, reason, words = fault
    bad, fine = read_two(kind, tmp_path, good(kind, **changes), good(kind))
    assert bad.question is None and fine.question is not None
    (reject,) = bad.rejects
    assert (reject.stage, reject.kind, reject.reason) == ("collect", "record", reason)
    assert words in reject.detail and len(reject.detail) < 400
    assert reject.detail.startswith({"jsonl": "line 1: ", "triviahg": "record 1: "}.get(kind, ""))
    assert (reject.source, reject.position) == (kind, 0) and reject.file.startswith("s.json")
    assert reject.record_id in ("q1", None)


def test_quotes_from_input_are_short_and_escaped(tmp_path) -> None:
    bad, _ = read_two(
        "triviahg", tmp_path, good("triviahg", Convergence=["\x1b[31m" + "x" * 5000, 0]), good("triviahg")
    )
    assert len(bad.rejects[0].detail) < 250 and "\x1b" not in bad.rejects[0].detail

"""The documented schema: JSON Lines and Parquet, and its JSON Schema."""

import json
from pathlib import Path

import jsonschema
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from quit.errors import InputError
from quit.sources import jsonl

SCHEMA = json.loads((Path(__file__).parents[2] / "schemas" / "question.schema.json").read_text("utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
SCORES = {"Venus": 0, "Mars": 1}


def good(number=0, **changes):
    record = {
        "id": f"q{number}",
        "question": "Which planet is red?",
        "answers": ["Mars"],
        "hints": [
            "It is a neighbour.",
            {"hint": "It has two moons.", "rank": 1, "convergence": 0.5, "url": "https://x.org", "scores": SCORES},
            {"text": "Its name is that of a god."},
        ],
        "candidates": ["Venus", "Mars"],
        "question_type": {"coarse": "LOC:LOCATION", "fine": "other:Other location"},
        "difficulty": "Easy",
        "metadata": {"anything": 1},
    } | changes
    return {key: value for key, value in record.items() if value is not ...}


def write(tmp_path, *lines, name="q.jsonl"):
    path = tmp_path / name
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines), encoding="utf-8")
    return path


def test_the_schema_is_valid_and_describes_every_property():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    for properties in (SCHEMA["properties"], SCHEMA["$defs"]["hint"]["properties"]):
        assert all(about.get("description") for about in properties.values())


GOOD = [
    {},
    {"id": 7},
    {"answers": "Mars"},
    {"candidates": None, "question_type": None, "difficulty": None},
    {"candidates": ..., "question_type": ..., "difficulty": ..., "metadata": ...},
    {"hints": []},
    {"hints": [{"hint": "It has moons.", "rank": None, "convergence": None, "url": None, "scores": None}]},
    {"hints": [{"hint": "It has moons.", "rank": "2", "scores": [{"candidate": "Mars", "score": 1}]}]},
]
BAD = [
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
]


@pytest.mark.parametrize("changes", GOOD)
def test_what_the_schema_allows_is_read(tmp_path, changes):
    VALIDATOR.validate(good(**changes))
    (record,) = jsonl.read(write(tmp_path, good(**changes)))
    assert record.question and not record.rejects
    assert record.question.answers == ("Mars",) and record.question.source == "jsonl"


@pytest.mark.parametrize(("changes", "reason", "words"), BAD)
def test_what_the_schema_forbids_is_rejected_with_its_line(tmp_path, changes, reason, words):
    assert not VALIDATOR.is_valid(good(**changes))
    fine, bad = jsonl.read(write(tmp_path, good(1), "", good(**changes)))
    assert fine.question and bad.question is None
    (reject,) = bad.rejects
    assert reject.reason == reason and words in reject.detail
    assert reject.detail.startswith("line 3: ") and reject.position == 2


def test_everything_that_a_record_holds(tmp_path):
    (record,) = jsonl.read(write(tmp_path, good()))
    question = record.question
    assert (question.coarse, question.fine, question.difficulty) == ("LOC:LOCATION", "other:Other location", "Easy")
    assert [hint.text.split()[-1] for hint in question.hints] == ["neighbour.", "moons.", "god."]
    hint = question.hints[1]
    assert (hint.rank, hint.convergence, hint.url, hint.scores) == (1, 0.5, "https://x.org", {"Venus": 0, "Mars": 1})
    assert question.candidates == ("Venus", "Mars")


def test_bad_lines_cost_themselves_alone(tmp_path):
    path = tmp_path / "q.jsonl"
    lines = [b"\xef\xbb\xbf" + json.dumps(good(0)).encode(), b"{broken", b"\xff\xfe", b"[1]", b"null", b"[" * 100_000]
    path.write_bytes(b"\r\n".join([*lines, json.dumps(good(1)).encode()]))
    parsed = list(jsonl.read(path))
    assert [record.question.record_id for record in parsed if record.question] == ["q0", "q1"]
    assert [reject.reason for record in parsed for reject in record.rejects] == [
        "not_json", "not_utf8", "not_an_object", "not_an_object", "not_json",
    ]  # fmt: skip


def test_an_array_in_a_jsonl_file_is_read(tmp_path):
    assert len(list(jsonl.read(write(tmp_path, json.dumps([good(0), good(1)], indent=1))))) == 2


@pytest.mark.parametrize("text", ["", "hello", "3\n4", "\n\n", '{"id": 1}'])
def test_no_usable_record_is_an_error(tmp_path, text):
    with pytest.raises(InputError, match="Expected|expected"):
        list(jsonl.read(write(tmp_path, text)))


def test_parquet_holds_the_same(tmp_path):
    rows = [good(0, metadata=...), good(1, metadata=..., question_type=None, candidates=None)]
    for row in rows:
        hint = {"hint": "It has two moons.", "rank": 1, "scores": list(SCORES.items())}
        row["hints"] = [hint, {"hint": "It is red."}]
    hint = pa.struct([("hint", pa.string()), ("rank", pa.int64()), ("scores", pa.map_(pa.string(), pa.int8()))])
    kind = pa.struct([("coarse", pa.string()), ("fine", pa.string())])
    texts = pa.list_(pa.string())
    columns = {"id": pa.string(), "question": pa.string(), "answers": texts, "hints": pa.list_(hint)}
    columns |= {"candidates": texts, "question_type": kind, "difficulty": pa.string()}
    schema = pa.schema(list(columns.items()))
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), tmp_path / "q.parquet")
    parsed = [record.question for record in jsonl.read(tmp_path / "q.parquet")]
    assert [question.record_id for question in parsed] == ["q0", "q1"]
    assert parsed[0].hints[0].scores == {"Venus": 0, "Mars": 1} and parsed[0].hints[1].scores is None
    assert parsed[0].coarse == "LOC:LOCATION" and parsed[1].coarse is None
    assert parsed[1].candidates == ("Venus", "Mars")


def test_a_damaged_parquet_file_is_an_error(tmp_path):
    (tmp_path / "q.parquet").write_bytes(b"PAR1 nothing")
    with pytest.raises(InputError, match="not a readable Parquet"):
        list(jsonl.read(tmp_path / "q.parquet"))

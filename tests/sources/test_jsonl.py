"""The documented schema: JSON Lines and Parquet, and its JSON Schema."""

import json

import jsonschema
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from quit.errors import InputError
from quit.sources import SourceRef, jsonl, read_source
from tests.paths import ROOT
from tests.sources.records import good, read
from tests.sources.test_fields import FAULTS

SCHEMA = json.loads((ROOT / "schemas" / "question.schema.json").read_text("utf-8"))
SCORES = {"Venus": 0, "Mars": 1}
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


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


@pytest.mark.parametrize("changes", GOOD)
def test_what_the_schema_allows_is_read(tmp_path, changes):
    VALIDATOR.validate(good("jsonl", **changes))
    (record,) = read("jsonl", tmp_path, good("jsonl", **changes))
    assert record.question and not record.rejects
    assert record.question.answers == ("Mars",) and record.question.source == "jsonl"


@pytest.mark.parametrize("form", ["lines", "array"])
def test_nan_which_pandas_has_for_missing_values_is_null(tmp_path, form):
    optional, of_hint = (
        properties.keys() - {*required, "text"}
        for properties, required in (
            (SCHEMA["properties"], [*SCHEMA["required"], "hints", "passages"]),
            (SCHEMA["$defs"]["hint"]["properties"], ["hint"]),
        )
    )
    records = [
        good(
            "jsonl", hints=[{"hint": "It has moons."} | dict.fromkeys(of_hint, value)], **dict.fromkeys(optional, value)
        )
        for value in (float("nan"), None)
    ]
    texts = [json.dumps([one]) if form == "array" else json.dumps(one) for one in records]
    with_nan, with_null = (read("jsonl", tmp_path, text) for text in texts)
    assert with_nan == with_null and with_nan[0].question and not with_nan[0].rejects


def test_the_schema_forbids_what_is_rejected():
    faults = [changes for kind, changes, *_ in FAULTS if kind == "jsonl"]
    assert faults and not [changes for changes in faults if VALIDATOR.is_valid(good("jsonl", **changes))]


def test_all_missing_fields_are_one_fault_with_what_the_record_has(tmp_path):
    """A record of MuSiQue, which has no hints."""
    record = {"id": "2hop__1", "paragraphs": [], "question": "Who?", "answer": "Ada"}
    with pytest.raises(InputError) as raised:
        read("jsonl", tmp_path, record)
    assert str(raised.value).endswith(
        "Fields 'answers', 'hints' are missing. The record has 'id', 'paragraphs', 'question', 'answer': did you mean "
        "'answers'? Without hints it is no source."
    )


@pytest.mark.parametrize("kind", ["triviahg", "wikihint"])
def test_a_kind_is_suggested_only_where_the_fields_fit(tmp_path, kind):
    path = tmp_path / "s.json"
    for value, words in (
        ([good(kind)], f" Its fields are those of {kind}: name it {kind}:{path}"),
        ([{"id": "1", "question": "Who?", "answer": "Ada"}], "it is no source."),
    ):
        path.write_text(json.dumps(value), encoding="utf-8")
        with pytest.raises(InputError) as raised:
            list(read_source(SourceRef("jsonl", path)))
        assert str(raised.value).endswith(words)


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([("Mars", 0), ("Venus", 1), ("Mars", 1)], [("Venus", 1), ("Mars", 1)]),
        ([("Venus", 1), ("Io", 0), ("Venus", 0), ("Mars", 1)], [("Venus", 1), ("Io", 0), ("Mars", 1)]),
        ([("BeyoncÃ©", 0), ("Adele", 0), ("Beyoncé", 1)], [("Adele", 0), ("Beyoncé", 1)]),  # equal once it is repaired
        ([("Earth", 0), ("MARS", 1), ("Venus", 0)], [("Earth", 0), ("Venus", 0), ("MARS", 1)]),  # keys were sorted
        ([("Io", 0), ("Mars", 1), ("Venus", None)], [("Io", 0), ("Mars", 1)]),  # as Arrow merges objects
        ([("Mars", 0), ("The Mars", 1), ("Venus", 0)], [("Mars", 0), ("Venus", 0), ("The Mars", 1)]),
    ],
)
def test_the_gold_answer_is_the_last_score_wherever_it_stands(tmp_path, scores, expected):
    hint = {"hint": "It has two moons.", "scores": [{"candidate": name, "score": score} for name, score in scores]}
    (record,) = read("jsonl", tmp_path, good("jsonl", hints=[hint]))
    assert list(record.question.hints[0].scores.items()) == expected


def test_a_file_of_context_convergence_has_candidates_and_scores(tmp_path):
    hints = [{"hint": "It is red.", "candidate_answers": {"Mars": 1, "Venus": 0}, "convergence": 0.91}]
    records = [good("jsonl", hints=hints, candidates=..., candidate_answers=["Venus", "Mars"], subsets={"a": 1})]
    (tmp_path / "dataset_final.json").write_text(json.dumps(records), encoding="utf-8")
    [record] = read_source(SourceRef("jsonl", tmp_path / "dataset_final.json"))
    assert record.question.candidates == ("Venus", "Mars")
    assert list(record.question.hints[0].scores.items()) == [("Venus", 0), ("Mars", 1)]


def test_a_null_leaves_room_for_the_other_name_and_faults_name_the_field_that_is_there(tmp_path):
    hint = {"hint": "It is red.", "scores": None, "candidate_answers": {"Mars": 1, "Venus": 0}}
    (record,) = read("jsonl", tmp_path, good("jsonl", hints=[hint]))
    assert list(record.question.hints[0].scores.items()) == [("Venus", 0), ("Mars", 1)]
    passage = {"text": "Mars is red.", "title": ["t"]}
    for change, field in (
        ({"candidate_answers": 5, "candidates": ...}, "'candidate_answers'"),
        ({"hints": [{**hint, "candidate_answers": 5}]}, r"'hints\[0\].candidate_answers'"),
        ({"hints": ..., "passages": [passage]}, r"'passages\[0\].title'"),
    ):
        with pytest.raises(InputError, match=f"Field {field}"):
            read("jsonl", tmp_path, good("jsonl", **change))


@pytest.mark.parametrize("kind", ["jsonl", "triviahg"])
def test_a_first_line_that_is_a_list_costs_that_line_alone(tmp_path, kind):
    path = tmp_path / "s.json"
    path.write_text("[1]\n" + json.dumps(good(kind)) + "\n", encoding="utf-8")
    first, second = read_source(SourceRef(kind, path))
    assert first.rejects and not first.question and second.question


def test_parquet_is_known_by_its_bytes(tmp_path):
    hints = [f"It is hint {number} of Mars." for number in range(5)]
    table = pa.Table.from_pylist([{"id": "1", "question": "Which planet?", "answers": ["Mars"], "hints": hints}])
    unread = pa.array([10**7], pa.date32())  # beyond the years of Python
    pq.write_table(table.append_column("seen", unread), tmp_path / "s.jsonl")
    [record] = read_source(SourceRef("jsonl", tmp_path / "s.jsonl"))
    assert record.question.question == "Which planet?"


def test_the_gold_answer_needs_a_score(tmp_path):
    hint = {"hint": "It has two moons.", "scores": {"Io": 0, "Mars": None, "Venus": 1}}
    with pytest.raises(InputError, match=r"'hints\[0\].scores' has no score of the text 'Mars', the gold answer"):
        read("jsonl", tmp_path, good("jsonl", hints=[hint]))


def test_bad_lines_cost_themselves_alone(tmp_path):
    one, two = (json.dumps(good("jsonl", id=name)).encode() for name in ("q0", "q1"))
    lines = [b"\xef\xbb\xbf" + one, b"{broken", b"\xff\xfe", b"[1]", b"", b"null", b"[" * 100_000, two]
    parsed = read("jsonl", tmp_path, b"\r\n".join(lines))
    assert [record.question.record_id for record in parsed if record.question] == ["q0", "q1"]
    assert [(reject.reason, reject.detail[:7]) for record in parsed for reject in record.rejects] == [
        ("not_json", "line 2:"), ("not_utf8", "line 3:"), ("not_an_object", "line 4:"), ("not_an_object", "line 6:"),
        ("not_json", "line 7:"),
    ]  # fmt: skip


def test_an_array_in_a_jsonl_file_is_read(tmp_path):
    assert len(read("jsonl", tmp_path, json.dumps([good("jsonl"), good("jsonl", id="q2")], indent=1))) == 2


def test_parquet_holds_the_same(tmp_path):
    hints = [{"hint": "It has two moons.", "rank": 1, "scores": list(SCORES.items())}, {"hint": "It is red."}]
    rows = [good("jsonl", metadata=..., hints=hints, **more) for more in ({}, {"question_type": None})]
    hint = pa.struct([("hint", pa.string()), ("rank", pa.int64()), ("scores", pa.map_(pa.string(), pa.int8()))])
    kind = pa.struct([("coarse", pa.string()), ("fine", pa.string())])
    texts = pa.list_(pa.string())
    columns = {"id": pa.string(), "question": pa.string(), "answers": texts, "hints": pa.list_(hint)}
    columns |= {"candidates": texts, "question_type": kind, "difficulty": pa.string()}
    schema = pa.schema(list(columns.items()))
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), tmp_path / "q.parquet")
    questions = [record.question for record in jsonl.read(tmp_path / "q.parquet")]
    assert [(one.record_id, one.coarse, one.candidates) for one in questions] == [
        ("q1", "LOC:LOCATION", ("Venus", "Mars")), ("q1", None, ("Venus", "Mars"))
    ]  # fmt: skip
    assert [hint.scores for hint in questions[0].hints] == [SCORES, None]
    (tmp_path / "q.parquet").write_bytes(b"PAR1 nothing")
    with pytest.raises(InputError, match=r"q\.parquet cannot be read: .*Expected JSON Lines"):
        list(jsonl.read(tmp_path / "q.parquet"))


def test_a_column_that_is_not_read_does_no_harm(tmp_path):
    """Dates after the year 9999 and unknown time zones, for which Python has no value, and texts that are no UTF-8."""
    row = good("jsonl", metadata=..., question_type=..., hints=["It has two moons.", "It is red."])
    other = {
        "day": pa.array([10**7], pa.date32()),
        "time": pa.array([1], pa.timestamp("us", "Mars/Base")),
        "note": pa.array([b"\xff"]).view(pa.string()),
    }
    table = pa.table({name: [value] for name, value in row.items()} | other)
    pq.write_table(table, tmp_path / "q.parquet")
    [record] = jsonl.read(tmp_path / "q.parquet")
    assert record.question.record_id == "q1" and [hint.text for hint in record.question.hints] == row["hints"]
    pq.write_table(table.select(["id", "question", "hints", "day"]), tmp_path / "q.parquet")
    with pytest.raises(InputError, match=r"q\.parquet cannot be read: .*Expected JSON Lines"):
        list(jsonl.read(tmp_path / "q.parquet"))

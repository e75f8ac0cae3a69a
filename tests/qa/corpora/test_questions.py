"""Questions without documents: answers as each data set has them, written by hand."""

import json
from pathlib import Path
from typing import Any

import pytest

from quit.errors import InputError
from quit.qa.corpora.sources import parse_corpus_source
from tests.qa.corpora.worlds import built
from tests.rows import write_lines

COMPLEX = {
    "ID": "WebQTrn-1_a",
    "question": "Which country  near the Nile has Cairo?",
    "compositionality_type": "conjunction",
    "answers": [{"answer": "Egypt", "aliases": ["Arab Republic of Egypt", "egypt"], "answer_id": "m.1"}],
}
STRATEGY = {"qid": "s1", "term": "Nile", "question": "Could a Nile perch drive?", "answer": False}
NATURAL = {
    "example_id": -797,
    "question_text": "who was first",
    "document_text": "<P> Ada Lovelace was first . </P>",
    "annotations": [{"short_answers": [{"start_token": 1, "end_token": 3}], "yes_no_answer": "NONE"}],
}
OPEN = {"question": "where is it", "answer": ["Lima", "lima", "Peru"]}


@pytest.mark.parametrize(
    ("kind", "record", "text", "answers", "licence"),
    [
        ("cwq", COMPLEX, "Which country near the Nile has Cairo?", ["Egypt", "Arab Republic of Egypt"], None),
        ("strategyqa", STRATEGY, "Could a Nile perch drive?", ["no"], "MIT"),
        ("nq", NATURAL, "who was first", ["Ada Lovelace"], "CC BY-SA 3.0"),
        ("nq", OPEN, "where is it", ["Lima", "Peru"], None),
    ],
)
def test_questions_and_answers(tmp_path: Path, kind: str, record: dict, text: str, answers: list, licence: Any) -> None:
    path = write_lines(tmp_path / "q.jsonl", [record])
    documents = write_lines(tmp_path / "d.jsonl", [{"id": "1", "text": "Egypt is a country."}])
    corpus = built(tmp_path / "C", f"{kind}:{path}", f"jsonl:{documents}")
    assert not corpus.rejects.num_rows
    [row] = corpus.queries.to_pylist()
    assert (row["text"], row["answers"], row["source"]) == (text, answers, kind) and len(corpus) == 1
    assert parse_corpus_source(f"{kind}:{path}").terms()["licence"] == licence


@pytest.mark.parametrize(
    ("kind", "record", "said"),
    [
        ("cwq", COMPLEX | {"answers": []}, "has no answer"),
        ("cwq", COMPLEX | {"answers": [{"answer": 3}]}, r"'answers\[0\].answer' must be a text"),
        ("strategyqa", STRATEGY | {"answer": "yes"}, "'answer' must be true or false"),
        ("nq", NATURAL | {"annotations": [{"short_answers": [{"start_token": 1}]}]}, "'short_answers' must be"),
        *(
            ("nq", NATURAL | {"annotations": [{"short_answers": [{"start_token": start, "end_token": end}]}]}, said)
            for start, end, said in ((-3, -1, "-3 to -1 of 7"), (4, 99, "4 to 99 of 7"), (3, 1, "3 to 1 of 7"))
        ),
        ("nq", NATURAL | {"annotations": [{"short_answers": [{"start_token": -1, "end_token": -1}]}]}, "has no answer"),
        ("nq", {"question": " ", "answer": "x"}, "question is blank"),
    ],
)
def test_a_record_that_cannot_be_used_is_named(tmp_path: Path, kind: str, record: dict, said: str) -> None:
    (tmp_path / "q.json").write_text(json.dumps([record]))
    with pytest.raises(InputError, match=said):
        built(tmp_path / "C", f"{kind}:{tmp_path / 'q.json'}")

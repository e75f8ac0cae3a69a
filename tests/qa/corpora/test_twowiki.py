"""2WikiMultihopQA's format: sentences, support, and which paragraph a sub-question is about."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from quit.errors import InputError
from quit.qa.corpora.sources import parse_corpus_source
from quit.qa.corpora.twowiki import read
from quit.text.answers import answer_key
from tests.rows import cases

RECORD = json.loads(Path(__file__).with_name("twowiki.json").read_text(encoding="utf-8"))
PAIRS = cases(__file__, "twowiki_pairs.jsonl")  # not in the order of the evidences, as in some real records


def _read(tmp_path: Path, *records: dict, **options):
    path = tmp_path / "w.json"
    path.write_text(json.dumps(records), encoding="utf-8")
    return list(read(path, **options))


def test_sentences_are_joined_and_support_is_by_title(tmp_path: Path) -> None:
    [parsed] = _read(tmp_path, RECORD)
    assert parsed.documents[0].text == "Blue is a film. It was directed by Bo."
    assert parsed.queries[0].relevant == ((3, 1), (0, 1), (2, 1), (4, 1))
    [parsed] = _read(tmp_path, RECORD, all_context=True)
    assert parsed.queries[0].relevant == tuple((row, 1) for row in range(5))
    assert [query.relevant for query in parsed.queries[1:]] == [((3, 1),), ((0, 1),), ((2, 1),), ((4, 1),)]


@pytest.mark.parametrize("number", [float, lambda number: None if number == 0 else number])
def test_sentences_of_a_data_frame_are_whole_or_missing(tmp_path: Path, number) -> None:
    facts = [[title, number(sentence)] for title, sentence in RECORD["supporting_facts"]]
    assert _read(tmp_path, RECORD | {"supporting_facts": facts}) == _read(tmp_path, RECORD)


def test_sub_questions_with_and_without_qa_pairs(tmp_path: Path) -> None:
    [plain] = _read(tmp_path, RECORD)
    steps = [(query.text, query.answers, query.hop) for query in plain.queries[1:3]]
    assert steps == [("Red >> director", ("Ann",), 1), ("Blue >> director", ("Bo",), 2)]
    another_evidence = ["Zed", "capital", "Q"]
    [another] = _read(tmp_path, {**RECORD, "evidences": [*RECORD["evidences"], another_evidence]})
    assert [query.relevant for query in another.queries[4:]] == [((4, 1),), ()]
    [asked] = _read(tmp_path, {**RECORD, "qa_pairs": PAIRS})
    assert [(q.text, q.answers, q.relevant) for q in asked.queries[1:]] == [
        ("Who directed Blue (film)?", ("Bo",), ((0, 1),)),
        ("Who directed Red?", ("Ann",), ((3, 1),)),
        ("When was Bo born?", ("1950",), ((4, 1),)),
        ("When was Ann born?", ("1900",), ((2, 1),)),
    ]


def test_of_two_paragraphs_with_one_title_the_one_with_the_sentence_counts(tmp_path: Path) -> None:
    record = {**RECORD, "context": [*RECORD["context"], ["Blue (film)", ["Another Blue."]]]}
    record["context"] = [record["context"][5], *record["context"][:5]]
    [parsed] = _read(tmp_path, record)
    assert (1, 1) in parsed.queries[0].relevant and (0, 1) not in parsed.queries[0].relevant
    [parsed] = _read(tmp_path, {**record, "supporting_facts": [["Blue (film)", 9]], "evidences": []})
    assert parsed.queries[0].relevant == ((0, 1),), "the first where none has it"


def test_rows_of_the_hub_are_the_same_records(tmp_path: Path) -> None:
    """Objects of lists, plain or as JSON texts, in JSON and in Parquet."""
    [expected] = _read(tmp_path, RECORD)
    titles, sentences = (list(column) for column in zip(*RECORD["context"], strict=True))
    names, numbers = (list(column) for column in zip(*RECORD["supporting_facts"], strict=True))
    objects = {
        "context": {"title": titles, "sentences": sentences},
        "supporting_facts": {"title": names, "sent_id": numbers},
    }
    texts = {name: json.dumps(RECORD[name]) for name in ("context", "supporting_facts", "evidences")}
    for change in (objects, texts, {name: json.dumps(value) for name, value in objects.items()}):
        [parsed] = _read(tmp_path, RECORD | change)
        assert (parsed.documents, parsed.queries) == (expected.documents, expected.queries)
        pq.write_table(pa.Table.from_pylist([RECORD | change]), tmp_path / "w.parquet")
        [parsed] = read(tmp_path / "w.parquet")
        assert (parsed.documents, parsed.queries) == (expected.documents, expected.queries)


def test_a_licence_follows_the_data(tmp_path: Path) -> None:
    def write(**fields: Any) -> str:
        without_evidences = {key: value for key, value in RECORD.items() if key != "evidences"}
        (tmp_path / "w.json").write_text(json.dumps([without_evidences | fields]))
        return str(tmp_path / "w.json")

    def licence(source: str) -> str | None:
        return parse_corpus_source(source).terms()["licence"]

    path = write(evidences=RECORD["evidences"])
    assert licence(f"2wiki:{path}") == "Apache-2.0"
    with pytest.raises(InputError, match="is 2wiki, not hotpotqa .*name it 2wiki:"):
        parse_corpus_source(f"hotpotqa:{path}")
    path = write(level="hard")
    assert licence(f"hotpotqa:{path}") == "CC BY-SA 4.0"
    assert "Yang" in str(parse_corpus_source(f"hotpotqa:{path}").terms()["citation"])
    with pytest.raises(InputError, match="is hotpotqa, not 2wiki .*name it hotpotqa:"):
        parse_corpus_source(f"2wiki:{path}")
    path = write()
    assert licence(f"2wiki:{path}") is licence(f"hotpotqa:{path}") is None


def test_a_record_may_call_its_identity_id(tmp_path: Path) -> None:
    records = ({**RECORD, "_id": None, "id": "y"}, {"id": "z", **{key: RECORD[key] for key in RECORD if key != "_id"}})
    assert [parsed.record_id for parsed in _read(tmp_path, *records, {**RECORD, "id": "y"})] == ["y", "z", "x1"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"supporting_facts": [["Nowhere", 0]]}, "no_support"),
        ({"context": [["Red", "no list"], "x"]}, "wrong_type"),
        ({"context": [["Red", ["Red is a film."], "x"]]}, "wrong_type"),
        ({"evidences": [["a", "b"]]}, "wrong_type"),
        ({"evidences": [["", "director", "Ann"]]}, "wrong_type"),
        ({"evidences": [["Red", " ", "Ann"]]}, "wrong_type"),
        ({"supporting_facts": [["Red", -1]]}, "wrong_type"),
        ({"supporting_facts": [["Red", 1.5]]}, "wrong_type"),
        ({"question": " "}, "no_question"),
        ({"answer": "", "supporting_facts": [], "evidences": []}, "no_answer"),  # a public test file
    ],
)
def test_faults_are_rejects(tmp_path: Path, change: dict, reason: str) -> None:
    parsed = _read(tmp_path, RECORD, {**RECORD, "_id": "x2", **change})
    assert [reject.reason for reject in parsed[1].rejects] == [reason] and not parsed[1].queries


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (json.dumps([RECORD, RECORD])[:-200], r"w\.json is not JSON: .* in record 2 \(line 1, column "),
        ("[1, 2]", r"w\.json"),
        ('[{"_id": 1, "context": []}]', r"w\.json"),
    ],
)
def test_a_file_that_is_cut_off_or_no_2wiki_says_where(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "w.json"
    path.write_text(text)
    with pytest.raises(InputError, match=said):
        list(read(path))


def test_in_the_real_file_sub_questions_find_their_paragraphs(data: Path) -> None:
    """Each supporting paragraph is the support of one sub-question, and holds its answer (one with another accent)."""
    steps = holding = 0
    for record in read(data / "2wikimultihopqa" / "train500.json"):
        whole = {row for row, _ in record.queries[0].relevant}
        assert {row for query in record.queries[1:] for row, _ in query.relevant} == whole
        for query in record.queries[1:]:
            [(row, _)] = query.relevant
            held = answer_key(f"{record.documents[row].title} {record.documents[row].text}")
            steps += 1
            holding += answer_key(query.answers[0]) in held
    assert (steps, holding) == (1184, 1184)

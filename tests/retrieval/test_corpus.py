"""Documents of JSONL files: which count, what they say, what is left out."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from quit.errors import InputError
from quit.retrieval.corpus import Corpus, corpus_checksum, read
from tests.qa.corpora.worlds import built
from tests.rows import write_lines


def test_the_three_dialects(tmp_path: Path) -> None:
    rows = [
        {"_id": "b", "title": "Nile", "text": "A  river\u00a0in\nAfrica."},
        {"id": 7, "contents": "Congo\nA river.", "title": "not part of it"},
        {"doc_id": "d", "text": "Cafe\u0301", "extra": [1]},
    ]
    path = write_lines(tmp_path / "c.jsonl", rows)
    path.write_text(path.read_text() + "\n")
    corpus = Corpus(path)
    assert list(corpus) == ["Nile A river in Africa.", "Congo A river.", "Café"]
    assert [corpus[row] for row in (2, 0, 1)] == ["Café", "Nile A river in Africa.", "Congo A river."]
    assert len(corpus) == 3 and corpus.rejects == []


def test_what_is_left_out_is_named(tmp_path: Path) -> None:
    texts = [("a", "one"), ("a", "another"), ("b", "  "), (None, "nameless"), ("a", "one"), ("c", "one")]
    rows = [{"text": text} | ({"id": name} if name else {}) for name, text in texts]
    corpus = Corpus(write_lines(tmp_path / "c.jsonl", rows))
    assert list(corpus) == ["one"]  # equal texts count once; of one id and two texts the first
    rejects = [(one.reason, one.position, one.record_id) for one in corpus.rejects]
    assert rejects == [("duplicate_id", 1, "a"), ("missing_field", 2, "b"), ("missing_field", 3, None)]
    assert "'a'" in corpus.rejects[0].detail and "no text" in corpus.rejects[1].detail


@pytest.mark.parametrize("ending", ["jsonl.gz", "jsonl.zst", "parquet"])
def test_packed_files_hold_the_same_documents(tmp_path: Path, ending: str) -> None:
    rows = [{"id": str(number), "title": "T" * number, "text": f"text {number}"} for number in range(3)]
    plain = Corpus(write_lines(tmp_path / "plain" / "c.jsonl", rows))
    path = tmp_path / "packed" / f"c.{ending}"
    path.parent.mkdir()
    if ending == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    else:
        codec = {"gz": "gzip", "zst": "zstd"}[ending.rpartition(".")[2]]
        path.write_bytes(pa.compress((tmp_path / "plain" / "c.jsonl").read_bytes(), codec, asbytes=True))
    for corpus in (Corpus(path), Corpus(path.parent)):
        assert list(corpus) == list(plain) and corpus.ids([2, 0]) == ["2", "0"]
    assert [record.documents for record in read(path)] == [record.documents for record in read(plain.path)]
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(InputError, match=f"c.{ending}.*(cannot be read|not a readable)"):
        Corpus(path)


def test_a_folder_is_its_corpus_file_else_all_files(tmp_path: Path) -> None:
    write_lines(tmp_path / "two" / "b.jsonl", [{"id": "2", "text": "second"}])
    write_lines(tmp_path / "two" / "a.jsonl", [{"id": "1", "text": "first"}, {"id": "3", "text": "third"}])
    assert list(Corpus(tmp_path / "two")) == ["first", "third", "second"]
    write_lines(tmp_path / "beir" / "queries.jsonl", [{"_id": "q", "text": "no document"}])
    write_lines(tmp_path / "beir" / "corpus.jsonl", [{"_id": "1", "text": "a document"}])
    assert list(Corpus(tmp_path / "beir")) == ["a document"]


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "There is no corpus"), ("{\n", "line 1: The line is not JSON"), ("[1]\n", "record 1 is the number 1"),
     ("", "no usable"), ('{"id": 1}\n', "no text")],
)  # fmt: skip
def test_a_corpus_that_is_none_is_an_error(tmp_path: Path, content: str | None, said: str) -> None:
    if content is not None:
        (tmp_path / "c.jsonl").write_text(content)
    with pytest.raises(InputError, match=said):
        Corpus(tmp_path / "c.jsonl")


def test_the_checksum_is_of_the_content_not_the_place(tmp_path: Path) -> None:
    one = write_lines(tmp_path / "one.jsonl", [{"id": "1", "text": "x"}])
    other = write_lines(tmp_path / "deep" / "other.jsonl", [{"id": "1", "text": "x"}])
    assert corpus_checksum(one) == corpus_checksum(other) == corpus_checksum(other.parent)
    write_lines(other, [{"id": "1", "text": "y"}])
    assert corpus_checksum(one) != corpus_checksum(other)


def test_lone_surrogates_are_repaired_and_long_ids_quoted_short(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    pair = r'{"id": "p", "text": "\ud83d\ude00"}'
    lone = r'{"id": "a\ud800", "title": "b\udfff", "text": "c\ud800d"}'
    long = json.dumps({"id": "x" * 180_000, "text": ""})
    path.write_text("\n".join([pair, lone, long]) + "\n")
    corpus = Corpus(path)
    assert list(corpus) == ["\U0001f600", "b\ufffd c\ufffdd"] and corpus.ids([0, 1]) == ["p", "a?"]
    assert len(corpus.rejects) == 1 and len(corpus.rejects[0].detail) < 200
    other = built(tmp_path / "C", f"jsonl:{path}")
    assert other.texts([0, 1]) == list(corpus) and other.rejects["position"].to_pylist() == [2]

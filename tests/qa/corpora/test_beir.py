"""Other people's data in BEIR's layout: questions with answers and relevance, and clear words about bad lines."""

import gzip
import itertools
import json
import shutil
from pathlib import Path
from unittest.mock import Mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from quit.errors import InputError
from quit.qa.corpora import build
from quit.qa.corpora.export import export_corpus
from quit.qa.corpora.reach import reach
from tests.qa.corpora.worlds import Fixed, built, musique_record, relevant_titles
from tests.rows import write_lines

NILE, CAIRO, LIMA = ("Nile", "A river."), ("Cairo", "A city on the Nile."), ("Lima", "A capital.")


def _folder(path: Path, queries: list[dict], qrels: str) -> Path:
    documents = [{"_id": f"d{row}", "title": title, "text": text} for row, (title, text) in enumerate((NILE, CAIRO))]
    write_lines(path / "corpus.jsonl", documents)
    write_lines(path / "queries.jsonl", queries)
    (path / "qrels").mkdir()
    (path / "qrels" / "test.tsv").write_text(qrels, encoding="utf-8")
    return path


def test_questions_answers_and_relevance_by_hand(tmp_path: Path) -> None:
    queries = [
        {"_id": "1", "text": "Which  river?", "metadata": {"answer": "Nile", "kind": "place"}},
        {"_id": 2, "text": "Which city?", "answers": ["Cairo", "", "Al-Qahira", 969]},
        {"_id": "1a", "text": "Where is it?", "metadata": {"parent_id": "1", "hop": 1}},
        {"_id": "3", "text": "Unjudged?", "answer": 1.5},
    ]
    qrels = "query-id\tcorpus-id\tscore\n1\td1\t1\n1\td0\t200\n2\td1\t1\n2\td0\t0\n1a\td1\t1\n"
    corpus = built(tmp_path / "C", f"beir:{_folder(tmp_path / 'b', queries, qrels)}")
    assert not corpus.rejects.num_rows
    assert corpus.titles([0, 1]) == ["Nile", "Cairo"] and len(corpus) == 2
    assert corpus.manifest["counts"]["paragraphs"] == 2
    rows = {row["query_id"]: row for row in corpus.queries.to_pylist()}
    assert list(rows) == ["beir-1", "beir-1-s1", "beir-2", "beir-3"]
    assert (rows["beir-1"]["text"], rows["beir-1"]["answers"], rows["beir-1"]["kind"]) == (
        "Which river?", ["Nile"], "place",
    )  # fmt: skip
    assert rows["beir-2"]["answers"] == ["Cairo", "Al-Qahira", "969"] and rows["beir-1-s1"]["parent_id"] == "beir-1"
    assert rows["beir-3"]["answers"] == ["1.5"]
    relevance = {"beir-1": {"Cairo": 1, "Nile": 200}, "beir-1-s1": {"Cairo": 1}, "beir-2": {"Cairo": 1}}
    assert relevant_titles(corpus) == relevance
    with pytest.raises(InputError, match="of the kind 'plac'. Did you mean 'place'"):  # other questions have no kind
        reach(corpus, "fixed", Fixed([0]), None, "plac")


@pytest.mark.parametrize("names", itertools.permutations(("query-id", "corpus-id", "score")))
def test_qrels_are_read_by_the_names_in_their_heading(tmp_path: Path, names: tuple[str, ...]) -> None:
    row = {"query-id": "1", "corpus-id": "d1", "score": "2"}
    lines = ["\t".join(names), "\t".join(row[name] for name in names)]
    folder = _folder(tmp_path / "b", [{"_id": "1", "text": "Which?"}], "\n".join(lines))
    assert relevant_titles(built(tmp_path / "C", f"beir:{folder}")) == {"beir-1": {"Cairo": 2}}


def test_folders_as_they_are_in_the_wild(tmp_path: Path) -> None:
    """Gzip and Parquet; ids in another Unicode form; a document that is a title; whole decimals; a first line that is
    no heading; two grades of one pair."""
    folder = tmp_path / "b"
    (folder / "qrels").mkdir(parents=True)
    documents = [{"_id": "caf\u00e9", "title": "Nile", "text": ""}, {"_id": "d1", "title": "", "text": "A city."}]
    pq.write_table(pa.Table.from_pylist(documents), folder / "corpus.parquet")
    queries = [{"_id": "q1", "text": "Which river?"}, {"_id": "e\u0301", "text": "Which city?"}]
    with gzip.open(folder / "queries.jsonl.gz", "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in queries)
    qrels = "q1\tcafe\u0301\t1.0\nq1\td1\t0\nq1\td1\t2\n\u00e9\td1\t1\n"
    with gzip.open(folder / "qrels" / "test.tsv.gz", "wt") as file:
        file.write(qrels)
    corpus = built(tmp_path / "C", f"beir:{folder}")
    assert corpus.texts([0, 1]) == ["Nile", "A city."] and len(corpus) == 2
    assert list(relevant_titles(corpus).values()) == [{"Nile": 1}, {"": 1}]
    [reject] = corpus.rejects.to_pylist()
    assert reject["file"] == "test.tsv.gz" and reject["detail"] == (
        "line 3: an earlier line grades 'd1' 0 for 'q1'; that one is kept"
    )
    for line in ("q1\tcaf\u00e9\t0.5\n", "q\tcaf\u00e9\thigh\n"):
        (folder / "qrels" / "test.tsv").write_text(line)
        with pytest.raises(InputError, match=r"test\.tsv, line 1: expected query-id, corpus-id and a whole number"):
            built(tmp_path / "D", f"beir:{folder}")
    (folder / "queries.jsonl.gz").write_bytes((folder / "queries.jsonl.gz").read_bytes()[:-9])
    (folder / "qrels" / "test.tsv").unlink()
    with pytest.raises(InputError, match=r"queries\.jsonl\.gz cannot be read \(its gzip is damaged or cut off"):
        built(tmp_path / "D", f"beir:{folder}")


def test_ids_that_differ_in_punctuation_alone_stay_apart_also_after_a_kill(tmp_path: Path, monkeypatch) -> None:
    names = ["q 1", "q_1", "q-s1", "q", "q 1"]
    queries = [{"_id": name, "text": f"Question {number}?"} for number, name in enumerate(names)]
    queries.append({"_id": "q's first", "text": "A step?", "metadata": {"parent_id": "q", "hop": 1}})
    qrels = "".join(f"{name}\td0\t1\n" for name in names[:4])
    source = f"beir:{_folder(tmp_path / 'b', queries, qrels)}"
    corpus = built(tmp_path / "C", source)
    ids = {row["text"]: (row["query_id"], row["record_id"]) for row in corpus.queries.to_pylist()}
    assert [ids[f"Question {number}?"][1] for number in range(4)] == names[:4] and ids["A step?"][1] == "q"
    assert ids["Question 0?"][0] == "beir-q_1" and ids["Question 1?"][0].startswith("beir-q_1-")
    assert ids["A step?"][0] == f"{ids['Question 3?'][0]}-s1"
    assert len({query_id for query_id, _ in ids.values()}) == 5 and len(relevant_titles(corpus)) == 4
    assert [row["detail"] for row in corpus.rejects.to_pylist()] == ["line 5: an earlier query has the id 'q 1'"]
    monkeypatch.setattr(build, "BLOCK", 1)
    monkeypatch.setattr(build, "_finish", Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        built(tmp_path / "D", source)
    for step in sorted((tmp_path / "D/partial").glob("0*"))[4:]:  # two documents and two questions stay
        shutil.rmtree(step)
    monkeypatch.undo()
    monkeypatch.setattr(build, "BLOCK", 1)
    assert built(tmp_path / "D", source).queries.equals(corpus.queries)


def test_what_export_writes_comes_back(tmp_path: Path) -> None:
    source = write_lines(tmp_path / "m.jsonl", [musique_record("2hop__1", [NILE, CAIRO, LIMA], [1, 0])])
    first = built(tmp_path / "C", f"musique:{source}")
    export_corpus(first, ["beir"], tmp_path / "out")
    again = built(tmp_path / "D", f"beir:{tmp_path / 'out' / 'beir'}")
    assert not again.rejects.num_rows
    assert again.all_ids() == first.all_ids() and again.texts([0, 1, 2]) == first.texts([0, 1, 2])
    kept = ("text", "answers", "hop", "kind")
    for before, after in zip(first.queries.to_pylist(), again.queries.to_pylist(), strict=True):
        assert {name: before[name] for name in kept} == {name: after[name] for name in kept}
    assert list(relevant_titles(again).values()) == list(relevant_titles(first).values())


def test_lines_that_cannot_be_used_are_rejects_with_file_and_line(tmp_path: Path) -> None:
    queries = [
        {"_id": "1", "text": "Which river?"},
        {"_id": "1", "text": "Again?"},
        {"_id": "4", "text": " "},
        {"_id": "5", "text": "Step?", "metadata": {"parent_id": "9", "hop": 1}},
        {"_id": "6", "text": "Step?", "metadata": {"parent_id": "1"}},
        {"_id": "5", "text": "Step?", "metadata": {"parent_id": "1", "hop": 1}},
        {"_id": "7", "text": "One?", "metadata": {"parent_id": "1", "hop": 1}},
        {"_id": "9", "text": "Beside it?", "metadata": {"parent_id": "1", "hop": 1}},
        {"_id": "10", "text": "Far?", "metadata": {"parent_id": "1", "hop": 40_000}},
        {"_id": None, "text": "Whose?"},
        {"_id": None, "id": "11", "text": "Which?"},
    ]
    qrels = "1\td0\t1\n1\td7\t1\n8\td0\t1\na\u2028b\td0\t1\n"
    folder = _folder(tmp_path / "b", queries, qrels)
    corpus = built(tmp_path / "C", f"beir:{folder}")
    rejects = [(row["file"], row["reason"], row["detail"]) for row in corpus.rejects.to_pylist()]
    assert sorted(rejects) == [
        ("queries.jsonl", "duplicate_id", "line 2: an earlier query has the id '1'"),
        ("queries.jsonl", "duplicate_id", "line 6: an earlier query has the id '5'"),
        ("queries.jsonl", "duplicate_id", "line 8: an earlier sub-question of '1' has the hop 1"),
        ("queries.jsonl", "missing_field", "line 10: the query has no _id (a text or a whole number), or no text"),
        ("queries.jsonl", "missing_field", "line 3: the query has no _id (a text or a whole number), or no text"),
        ("queries.jsonl", "missing_field", "line 5: the sub-question has no hop (1 to 32767)"),
        ("queries.jsonl", "missing_field", "line 9: the sub-question has no hop (1 to 32767)"),
        ("queries.jsonl", "no_question", "line 4: there is no query '9'"),
        ("test.tsv", "no_document", "line 2: the corpus has no usable document 'd7'"),
        ("test.tsv", "no_question", "line 3: there is no query '8'"),
        ("test.tsv", "no_question", "line 4: there is no query 'a\\u2028b'"),
    ]
    assert relevant_titles(corpus) == {"beir-1": {"Nile": 1}}
    assert corpus.queries["query_id"].to_pylist() == ["beir-1", "beir-1-s1", "beir-11"]


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("qrels/test.tsv", "1 0 d0 1\n", r"test.tsv, line 1: expected query-id, corpus-id"),
        ("qrels/test.tsv", "query-id\tcorpus-id\tscore\n1\td0\thigh\n", r"test.tsv, line 2: .*'1\\td0\\thigh'"),
        ("qrels/test.tsv", "1\t0\t12\t1\n", r"test.tsv, line 1: expected query-id, corpus-id"),
        ("qrels/test.tsv", "1\td0\t40000\n", r"test.tsv, line 1: relevance 40000 is above 32,767"),
        ("queries.jsonl", '{"_id": "1", "text": "A?"}\n[1]\n', r"queries.jsonl, line 2 is a list of 1; expected"),
        ("corpus.jsonl", "{\n", r"corpus.jsonl, line 1: The line is not JSON"),
        ("queries.jsonl", None, "There is no .*queries.jsonl; expected a folder with corpus.jsonl"),
        ("qrels/test.tsv", None, "There is no .*qrels/.*tsv; expected a folder"),
    ],
)
def test_files_that_cannot_be_read(file: str, text: str | None, message: str, tmp_path: Path) -> None:
    folder = _folder(tmp_path / "b", [{"_id": "1", "text": "A?"}], "1\td0\t1\n")
    if text is None:
        (folder / file).unlink()
    else:
        (folder / file).write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        built(tmp_path / "C", f"beir:{folder}")

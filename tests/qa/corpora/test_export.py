"""Exports, read back by the tools they are for."""

from pathlib import Path
from urllib.parse import unquote

import ir_measures
import pytest

from quit.export.files import verify
from quit.qa.corpora.export import FORMATS, export_corpus
from quit.release.import_release import import_release
from tests.export.conftest import jsonl, tsv
from tests.qa.corpora.worlds import built, musique_record
from tests.release.published import splits, write
from tests.rows import write_lines


@pytest.fixture
def corpus(tmp_path: Path):
    paragraphs = [("Nile", "A river."), ('Say "x"\u2028', "tab\there"), ("", "No title.")]
    path = write_lines(tmp_path / "m.jsonl", [musique_record("2hop__1", paragraphs, [0, 1])])
    return built(tmp_path / "C", f"musique:{path}")


def test_all_formats_hold_the_same(corpus, tmp_path: Path) -> None:
    export_corpus(corpus, list(FORMATS), tmp_path / "X")
    folders = {name: tmp_path / "X" / name for name in FORMATS}
    ids = corpus.all_ids()
    beir = jsonl(folders["beir"] / "corpus.jsonl")
    texts = [("Nile", "A river."), ('Say "x"', "tab here"), ("", "No title.")]
    assert [(row["_id"], (row["title"], row["text"])) for row in beir] == list(zip(ids, texts, strict=True))
    pyserini = [row["contents"] for row in jsonl(folders["pyserini"] / "corpus" / "docs.jsonl")]
    assert pyserini == ["Nile\nA river.", 'Say "x"\ntab here', "No title."]
    assert tsv(folders["trec"] / "collection.tsv") == [
        [one, text] for one, text in zip(ids, corpus.texts(range(3)), strict=True)
    ]
    expected = {(row["query_id"], row["doc_id"], row["relevance"]) for row in corpus.qrels.to_pylist()}
    for name in ("trec", "pyserini"):
        files = sorted(folders[name].glob("qrels.*.txt"))
        rows = [row for file in files for row in ir_measures.read_trec_qrels(str(file))]
        assert {(row.query_id, row.doc_id, row.relevance) for row in rows} == expected
    head, *rows = tsv(folders["beir"] / "qrels" / "musique-sub-questions.tsv")
    assert head == ["query-id", "corpus-id", "score"] and len(rows) == 2
    queries = jsonl(folders["beir"] / "queries.jsonl")
    assert [row["_id"] for row in queries] == ["musique-2hop_1", "musique-2hop_1-s1", "musique-2hop_1-s2"]
    assert queries[1]["metadata"]["parent_id"] == "musique-2hop_1"
    manifest = verify(folders["beir"]).facts
    assert manifest["sources"][0]["licence"] == "CC BY 4.0" and manifest["counts"]["documents"] == 3


def test_ids_of_a_release_with_white_space_are_one_field_everywhere(tmp_path: Path) -> None:
    questions = splits()
    for name, records in zip(("tab\there", "two words", "line\nend 5%"), questions.values(), strict=True):
        records[0]["id"] = name
    import_release(write(tmp_path / "files", questions), tmp_path / "quit")
    corpus = built(tmp_path / "C", f"quit:{tmp_path / 'quit'}")
    export_corpus(corpus, list(FORMATS), tmp_path / "X")
    relevant = {(row["query_id"], row["doc_id"], row["relevance"]) for row in corpus.qrels.to_pylist()}
    ids = {query for query, _, _ in relevant}
    _, *lines = tsv(tmp_path / "X" / "beir" / "qrels" / "quit.tsv")
    assert {(unquote(query), document, int(label)) for query, document, label in lines} == relevant
    assert {unquote(row["_id"]) for row in jsonl(tmp_path / "X" / "beir" / "queries.jsonl")} == ids
    for name in ("trec", "pyserini"):
        rows = ir_measures.read_trec_qrels(str(tmp_path / "X" / name / "qrels.quit.txt"))
        assert {(unquote(row.query_id), row.doc_id, row.relevance) for row in rows} == relevant
        assert {unquote(query) for query, _ in tsv(tmp_path / "X" / name / "topics.quit.tsv")} == ids

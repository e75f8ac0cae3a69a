"""Exports, read back by the tools they are for."""

import json
from pathlib import Path

import ir_measures
import pytest

from quit.errors import SettingsError
from quit.export.corpus import FORMATS, export_corpus
from quit.export.files import verify
from tests.corpora.worlds import built, musique_record
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
    beir = [json.loads(line) for line in (folders["beir"] / "corpus.jsonl").read_text().splitlines()]
    texts = [("Nile", "A river."), ('Say "x"', "tab here"), ("", "No title.")]
    assert [(row["_id"], (row["title"], row["text"])) for row in beir] == list(zip(ids, texts, strict=True))
    pyserini = [json.loads(line) for line in (folders["pyserini"] / "corpus" / "docs.jsonl").read_text().splitlines()]
    assert [row["contents"] for row in pyserini] == ["Nile\nA river.", 'Say "x"\ntab here', "No title."]
    trec = [line.split("\t") for line in (folders["trec"] / "collection.tsv").read_text().splitlines()]
    assert trec == [[one, text] for one, text in zip(ids, corpus.texts(range(3)), strict=True)]
    expected = {(row["query_id"], row["doc_id"], row["relevance"]) for row in corpus.qrels.to_pylist()}
    for name in ("trec", "pyserini"):
        found = {
            (row.query_id, row.doc_id, row.relevance)
            for file in sorted(folders[name].glob("qrels.*.txt"))
            for row in ir_measures.read_trec_qrels(str(file))
        }
        assert found == expected
    tsv = (folders["beir"] / "qrels" / "musique-sub-questions.tsv").read_text().splitlines()
    assert tsv[0] == "query-id\tcorpus-id\tscore" and len(tsv) == 3
    queries = [json.loads(line) for line in (folders["beir"] / "queries.jsonl").read_text().splitlines()]
    assert [row["_id"] for row in queries] == ["musique-2hop_1", "musique-2hop_1-s1", "musique-2hop_1-s2"]
    assert queries[1]["metadata"]["parent_id"] == "musique-2hop_1"
    manifest = verify(folders["beir"]).facts
    assert manifest["sources"][0]["licence"] == "CC BY 4.0" and manifest["counts"]["documents"] == 3


def test_targets_are_protected(corpus, tmp_path: Path) -> None:
    export_corpus(corpus, ["beir"], tmp_path / "X")
    first = (tmp_path / "X" / "beir" / "manifest.json").read_bytes()
    export_corpus(corpus, ["beir"], tmp_path / "X", overwrite=True)
    assert (tmp_path / "X" / "beir" / "manifest.json").read_bytes() == first
    (tmp_path / "X" / "trec").mkdir()
    (tmp_path / "X" / "trec" / "letter.txt").write_text("dear")
    with pytest.raises(SettingsError, match="not an earlier export"):
        export_corpus(corpus, ["trec"], tmp_path / "X", overwrite=True)

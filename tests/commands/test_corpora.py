"""``quit corpus show`` and ``quit corpus export`` as they are typed."""

import json
from pathlib import Path

from quit.retrieval.built import BuiltCorpus
from tests.corpora.worlds import musique_record
from tests.rows import write_lines


def test_a_corpus_is_shown_and_exported(call, tmp_path: Path) -> None:
    record = musique_record("2hop__1", [("Nile", "A river."), ("Cairo", "A city."), ("Lima", "A capital.")], [1, 0])
    source = write_lines(tmp_path / "m.jsonl", [record])
    corpus = tmp_path / "C"
    assert call("corpus", "build", "-s", f"musique:{source}", "-o", corpus, "-q").out == ""
    shown = call("corpus", "show", corpus)
    assert shown.code == 0 and "3 documents of 3 paragraphs" in shown.out and "CC BY 4.0" in shown.out
    assert call("corpus", "show", corpus, "--json").json() == BuiltCorpus.open(corpus).manifest
    result = call("corpus", "export", corpus, "--format", "beir, trec", "--out", tmp_path / "E")
    assert result.code == 0 and len(result.out.splitlines()) == 2
    [documents] = (tmp_path / "E").rglob("corpus.jsonl")
    assert [json.loads(line)["title"] for line in documents.read_text().splitlines()] == ["Nile", "Cairo", "Lima"]
    assert list((tmp_path / "E").rglob("*qrels*"))
    assert call("corpus", "export", corpus, "--format", "beir", "--out", tmp_path / "E").code == 0  # the same bytes
    documents.write_text("{}\n")
    again = call("corpus", "export", corpus, "--format", "beir", "--out", tmp_path / "E")
    assert again.code == 3 and "was changed" in again.err
    assert call("corpus", "export", corpus, "--format", "beir", "--out", tmp_path / "E", "--overwrite").code == 0
    unknown = call("corpus", "export", corpus, "--format", "bier", "--out", tmp_path / "F")
    assert unknown.code == 4 and "Did you mean 'beir'" in unknown.err

"""``quit corpus show`` and ``quit corpus export`` as they are typed."""

import json
from pathlib import Path

import pytest

from quit.retrieval.built import BuiltCorpus
from tests.corpora.worlds import musique_record
from tests.rows import write_lines
from tests.running import call_quit

pytestmark = pytest.mark.usefixtures("own_folder")


def test_a_corpus_is_shown_and_exported(tmp_path: Path) -> None:
    record = musique_record("2hop__1", [("Nile", "A river."), ("Cairo", "A city."), ("Lima", "A capital.")], [1, 0])
    source = write_lines(tmp_path / "m.jsonl", [record])
    corpus = tmp_path / "C"
    assert call_quit("corpus", "build", "-s", f"musique:{source}", "-o", corpus, "-q").out == ""
    shown = call_quit("corpus", "show", corpus)
    assert "3 documents of 3 paragraphs" in shown.out and "CC BY 4.0" in shown.out
    assert call_quit("corpus", "show", corpus, "--json").json() == BuiltCorpus.open(corpus).manifest
    result = call_quit("corpus", "export", corpus, "--format", "beir, trec", "--out", tmp_path / "E")
    assert len(result.out.splitlines()) == 2
    [documents] = (tmp_path / "E").rglob("corpus.jsonl")
    assert [json.loads(line)["title"] for line in documents.read_text().splitlines()] == ["Nile", "Cairo", "Lima"]
    assert list((tmp_path / "E").rglob("*qrels*"))
    call_quit("corpus", "export", corpus, "--format", "beir", "--out", tmp_path / "E")  # the same bytes
    documents.write_text("{}\n")
    again = call_quit("corpus", "export", corpus, "--format", "beir", "--out", tmp_path / "E", code=3)
    assert "was changed" in again.err
    call_quit("corpus", "export", corpus, "--format", "beir", "--out", tmp_path / "E", "--overwrite")
    unknown = call_quit("corpus", "export", corpus, "--format", "bier", "--out", tmp_path / "F", code=4)
    assert "Did you mean 'beir'" in unknown.err

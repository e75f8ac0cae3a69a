"""Rankings of another program: which documents its ids mean, and what is said of those that mean none."""

import json
import re
from pathlib import Path

import pytest

from quit.errors import InputError
from quit.qa.indexes.built import BuiltCorpus
from quit.qa.indexes.rankings import read_rankings
from tests.qa.corpora.worlds import built, musique_record
from tests.rows import write_lines


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> BuiltCorpus:
    """Rows 0 to 3: documents "a", "b" and "b2" (one text), "c", and a paragraph of MuSiQue, which has no id there."""
    folder = tmp_path_factory.mktemp("world")
    texts = {"a": "alpha", "b": "beta", "b2": "beta", "c": "gamma"}
    documents = write_lines(folder / "d.jsonl", [{"id": name, "text": text} for name, text in texts.items()])
    questions = write_lines(folder / "m.jsonl", [musique_record("2hop__1", [("", "alpha"), ("T", "delta")], [0, 1])])
    return built(folder / "C", f"jsonl:{documents}", f"musique:{questions}")


def _rows(path: Path, corpus: BuiltCorpus) -> dict[str, list[int]]:
    return {name: ranking.rows.tolist() for name, ranking in read_rankings(path, corpus).by_id.items()}


def test_ids_of_the_source_and_of_the_corpus_mean_documents(corpus: BuiltCorpus, tmp_path: Path) -> None:
    last = corpus.ids([3])[0]
    scored = {"q": {"a": 1, "zz": 9.5, "c": 2, last: 3.5}, "none": {"zz": 1.0}}
    (tmp_path / "r.json").write_text(json.dumps(scored))
    read = read_rankings(tmp_path / "r.json", corpus)
    assert read.by_id["q"].rows.tolist() == [3, 2, 0] and read.by_id["q"].scores.tolist() == [3.5, 2, 1]
    assert len(read.by_id["none"]) == 0
    assert (read.documents, read.unknown) == ({"a", "zz", "c", last}, {"zz"})
    lines = [f"q Q0 {name} 7 {score} run" for name, score in scored["q"].items()]
    (tmp_path / "r.trec").write_text("\n".join(lines))
    assert _rows(tmp_path / "r.trec", corpus) == {"q": [3, 2, 0]}


def test_equal_scores_and_lists_keep_the_files_order_and_a_merged_document_comes_once(corpus, tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(json.dumps({"x": {"c": 1, "a": 1, "b": 1}, "y": ["b2", "a", "b", "c"]}))
    read = read_rankings(tmp_path / "r.json", corpus)
    assert _rows(tmp_path / "r.json", corpus) == {"x": [2, 0, 1], "y": [1, 0, 2]}
    assert read.by_id["y"].scores.tolist() == [1, 0.5, 0.25]


def test_an_id_of_two_documents_means_neither(tmp_path: Path) -> None:
    for name, text in (("one", "alpha"), ("two", "beta")):
        write_lines(tmp_path / f"{name}.jsonl", [{"id": "1", "text": text}, {"id": name, "text": name}])
    corpus = built(tmp_path / "C", *(f"jsonl:{tmp_path / name}.jsonl" for name in ("one", "two")))
    (tmp_path / "r.json").write_text('{"q": ["1", "two"]}')
    assert read_rankings(tmp_path / "r.json", corpus).unknown == {"1"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"q": {"zz": 1}}', "ranks no document of the corpus .*: it has 'zz', the corpus '[0-9a-f]{20}'"),
        ("{}", "ranks no document of the corpus .*: it has nothing, the corpus"),
        ("[1]", "holds .*; expected a run: lines of"),
        ('{"q": {"a": "high"}}', "'q' has the text 'high' for 'a'; expected a finite"),
        ('{"q": {"a": NaN}}', "'q' has NaN or null for 'a'"),
        ('{"q": [["a", 1]]}', "'q' has"),
        ('{"q": ', "is not JSON"),
    ],
)
def test_what_is_no_ranking_is_refused(corpus: BuiltCorpus, tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "r.json").write_text(text)
    with pytest.raises(InputError, match=f"^{re.escape(str(tmp_path))}.*{message}"):
        read_rankings(tmp_path / "r.json", corpus)

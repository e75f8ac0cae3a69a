"""The command line: a table and a page, beside another corpus, the grid, the names."""

from pathlib import Path

import pytest

from tests.running import call_quit

WIKI = """{"id": "a", "title": "Lima", "text": "The capital of Peru is Lima."}
{"id": "b", "text": "Cats purr."}
"""


@pytest.mark.slow
def test_another_corpus_stands_beside_the_release(release: Path, tmp_path: Path) -> None:
    """One labeler reads what was retrieved; its pool holds Lima, and the judge accepts what equals the gold answer."""
    corpus, out = tmp_path / "wiki.jsonl", tmp_path / "out"
    corpus.write_text(WIKI)
    run = ("benchmark", "run", "-r", release, "-o", out, "--corpus", corpus, "--reader", "minilm-late")
    run = (*run, "--set", "benchmark.resamples=100")
    result = call_quit(*run, "--json")
    report = result.json()
    assert {"results", "seconds"} == set(report)
    rows = [row for row in report["results"] if row["corpus"] == "wiki"]
    assert {row["metric"] for row in rows if not row["reader"]} == {
        "Hit(rel=2)@1", "Hit(rel=2)@10", "Hit(rel=2)@50", "Hit(rel=2)@100", "MRR(rel=2)@100",
    }  # fmt: skip
    assert {row["retriever"] for row in rows} == {"bm25"} and {row["reranker"] for row in rows} == {"", "oracle"}
    assert {row["metric"] for row in rows if row["reader"]} == {"EM", "F1", "cover-EM"}
    assert (out / "runs" / "wiki-bm25.run").read_text().startswith("q3 Q0 a 1 ")
    output = call_quit(*run).out
    assert "retriever" in output and "oracle" in output and str(out / "leaderboard.html") in output


def test_what_can_be_named_is_listed() -> None:
    names = call_quit("benchmark", "list", "--json").json()
    assert set(names) == {"retrievers", "rerankers", "readers"} and "bm25" in names["retrievers"]
    assert names["readers"]["minilm-late"] == "profile embedded"


def test_the_grid_prints_the_best_weights_first(release: Path, tmp_path: Path) -> None:
    grid = ("benchmark", "grid", "-r", release, "-o", tmp_path / "out", "--split", "test", "--reader", "minilm-late")
    names = call_quit(*grid, "--set", "benchmark.grid=[0.6,0.2]", "--json").json()
    assert {(row["alpha"], row["beta"]) for row in names["means"]} == {(0.6, 0.4), (0.2, 0.8)}
    assert {row["k"] for row in names["rows"]} == {3, 5}
    assert names["means"][0]["EM"] >= names["means"][1]["EM"]
    assert str(tmp_path / "out" / "grid.parquet") in call_quit(*grid, "--quiet").out

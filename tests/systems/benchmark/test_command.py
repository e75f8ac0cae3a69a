"""The command line: one clean line for what is wrong, a table for what is right."""

import json
from pathlib import Path

from typer.testing import CliRunner

from quit.cli import app

runner = CliRunner()
QUICK = ["--set", "benchmark.resamples=100"]


def test_a_run_prints_its_table_and_the_page(release: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = runner.invoke(app, ["benchmark", "run", "-r", str(release), "-o", str(out), "--quiet", *QUICK])
    assert done.exit_code == 0, done.output
    assert "retriever" in done.output and "oracle" in done.output and str(out / "leaderboard.html") in done.output
    as_json = runner.invoke(app, ["benchmark", "run", "-r", str(release), "-o", str(out), "--json", *QUICK])
    found = json.loads(as_json.stdout)
    assert {"results", "seconds"} == set(found) and found["results"][0]["corpus"] == "release"


def test_another_corpus_stands_beside_the_release(release: Path, tmp_path: Path) -> None:
    """One labeler reads what was retrieved; its pool holds Lima, and the judge accepts what equals the gold answer."""
    corpus = tmp_path / "wiki.jsonl"
    corpus.write_text(
        '{"id": "a", "title": "Lima", "text": "The capital of Peru is Lima."}\n{"id": "b", "text": "Cats purr."}\n'
    )
    out = tmp_path / "out"
    arguments = ["benchmark", "run", "-r", str(release), "-o", str(out), "--corpus", str(corpus), "--json", *QUICK]
    done = runner.invoke(app, [*arguments, "--reader", "minilm-late"])
    assert done.exit_code == 0, done.output
    rows = [row for row in json.loads(done.stdout)["results"] if row["corpus"] == "wiki"]
    assert {row["metric"] for row in rows if not row["reader"]} == {
        "Hit(rel=2)@1", "Hit(rel=2)@10", "Hit(rel=2)@50", "Hit(rel=2)@100", "MRR(rel=2)@100",
    }  # fmt: skip
    assert {row["retriever"] for row in rows} == {"bm25"} and {row["reranker"] for row in rows} == {"", "oracle"}
    assert {row["metric"] for row in rows if row["reader"]} == {"EM", "F1", "cover-EM"}
    assert (out / "runs" / "wiki-bm25.run").read_text().startswith("q3 Q0 a 1 ")


def test_what_can_be_named_is_listed() -> None:
    done = runner.invoke(app, ["benchmark", "list", "--json"])
    found = json.loads(done.stdout)
    assert set(found) == {"retrievers", "rerankers", "readers"} and "bm25" in found["retrievers"]
    assert found["readers"]["minilm-late"] == "profile embedded"


def test_the_grid_prints_the_best_weights_first(release: Path, tmp_path: Path) -> None:
    arguments = ["benchmark", "grid", "-r", str(release), "-o", str(tmp_path / "out"), "--split", "test"]
    done = runner.invoke(app, [*arguments, "--reader", "minilm-late", "--set", "benchmark.grid=[0.6,0.2]", "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert {(row["alpha"], row["beta"]) for row in found["means"]} == {(0.6, 0.4), (0.2, 0.8)}
    assert {row["k"] for row in found["rows"]} == {3, 5}
    assert found["means"][0]["EM"] >= found["means"][1]["EM"]
    done = runner.invoke(app, [*arguments, "--reader", "minilm-late", "--quiet"])
    assert done.exit_code == 0 and str(tmp_path / "out" / "grid.parquet") in done.output

"""Whole runs over the small release: files, other tools on the run files, resuming, bad input."""

import json
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from quit.errors import InputError, SettingsError
from quit.qa.benchmark import benchmark as module
from quit.qa.benchmark import plugins
from quit.qa.benchmark.benchmark import BenchmarkRequest, run_benchmark
from quit.qa.settings import load
from tests.answers import Reads
from tests.rows import write_lines

QUICK = ["benchmark.resamples=200"]


@pytest.fixture
def reader(monkeypatch) -> Reads:
    replies = {"It lies on the Pacific. Pizarro founded it.": "It is Lima", "Pizarro founded it.": "lima!"}
    output = Reads(lambda prompt, _: replies.get(" ".join(prompt.hints), "Wrong"))
    real = plugins.make_reader
    by_name = "quit.qa.benchmark.plugins.make_reader"
    monkeypatch.setattr(by_name, lambda name, context: output if name == "scripted" else real(name, context))
    monkeypatch.setattr(module, "check", lambda request, settings: None)
    return output


@pytest.fixture
def run(release: Path, tmp_path: Path, reader: Reads):
    """Run the benchmark on the release with BM25 and the scripted reader."""
    request = BenchmarkRequest(release, "all", ("bm25",), (), ("scripted",))

    def run(*more: str, **changes):
        return run_benchmark(replace(request, **changes), load("embedded", [*QUICK, *more]).settings, tmp_path / "out")

    return run


def test_a_run_and_its_files_and_a_second_one_that_asks_nothing(
    run, tmp_path: Path, reader: Reads, notes: list[str]
) -> None:
    out, outcome = tmp_path / "out", run()
    keys = ("retriever", "reranker", "reader", "strategy", "k", "metric")
    by_metric = {tuple(row[key] for key in keys): row["value"] for row in outcome.results.to_pylist()}
    # Every passage of q3, read alone: two texts make the reader say Lima. "lima!" equals it, "It is Lima" only covers
    # it.
    assert by_metric["oracle", "oracle", "scripted", "any", 1, "EM"] == pytest.approx(1 / 3)
    assert by_metric["oracle", "oracle", "", "", 0, "nDCG@10"] == 1.0
    # The oracle's rows of q3 in order: hint 0 first. Union of the first three is "Pacific, Pizarro".
    assert by_metric["oracle", "", "scripted", "norm", 3, "EM"] == 0.0
    assert by_metric["oracle", "", "scripted", "norm", 3, "cover-EM"] == pytest.approx(1 / 3)
    assert by_metric["oracle", "", "scripted", "norm", 1, "cover-EM"] == 0.0
    described = json.loads((out / "run.json").read_text())
    assert described["runs"] == {
        "release-bm25.run": "release: bm25", "release-bm25-oracle.run": "release: bm25 + oracle",
        "release-oracle.run": "release: oracle", "release-oracle-oracle.run": "release: oracle + oracle",
    }  # fmt: skip
    assert not {"other corpora", "listwise replies"} & set(described["facts"])
    assert pq.read_table(out / "results.parquet").equals(outcome.results)
    assert json.loads((out / "results.json").read_text()) == outcome.results.to_pylist()
    assert len(pq.read_table(out / "values.parquet")) == 3 * len(outcome.results)

    assert any(text.startswith("retrieve") for text in notes)
    before = {path: path.read_bytes() for path in out.iterdir() if path.is_file()}
    assert len(before) >= 7
    requests = len(reader.asked)
    notes.clear()
    run()
    assert notes == ["evaluate"] and len(reader.asked) == requests
    assert {path: path.read_bytes() for path in before} == before
    run("benchmark.k=[1,2]")  # another k reads only what it adds; retrieval stays
    assert not any(text.startswith("retrieve") for text in notes)


def test_another_run_leaves_its_own_run_files_and_without_bounds_no_oracle(run, tmp_path: Path) -> None:
    run()
    results = run(bounds=False, retrievers=("bm25", "oracle"), rerankers=("oracle",)).results
    assert [path.name for path in (tmp_path / "out" / "runs").iterdir()] == ["release-bm25.run"]
    assert {*results["retriever"].to_pylist()} == {"bm25"} and {*results["reranker"].to_pylist()} == {""}
    assert "any" not in results["strategy"].to_pylist()


def test_another_corpus_has_hits_at_label_2_and_its_own_facts(run, tmp_path: Path) -> None:
    texts = ["Lima is the capital of Peru.", "Bread is baked."]
    corpus = write_lines(tmp_path / "wiki.jsonl", ({"id": str(at), "text": text} for at, text in enumerate(texts)))
    rows = run(corpora=(corpus,), bounds=False, readers=()).results.to_pylist()
    beside = {row["metric"]: row["value"] for row in rows if row["corpus"] == "wiki"}
    assert all(name.startswith(("Hit(rel=2)@", "MRR(rel=2)@")) for name in beside) and beside["Hit(rel=2)@10"] > 0
    described = json.loads((tmp_path / "out" / "run.json").read_text())
    assert described["runs"] == {"release-bm25.run": "release: bm25", "wiki-bm25.run": "wiki: bm25"}
    facts = described["facts"]
    assert facts["other corpora"].startswith("wiki; retrieved passages labelled by minilm-vector, ")
    assert facts["mean words of a passage"].endswith(", wiki 4.50") and facts["passages"] == "12"


def test_metrics_deeper_than_retrievers_look_are_named(run, notes: list[str]) -> None:
    run("benchmark.depth=12", retrievers=("minilm",), bounds=False, readers=())
    limit = "Retrievers return 12 passages (benchmark.depth); deeper ones count no more: Hit@50, Hit@100"
    assert any(note.startswith(limit) for note in notes)


@pytest.mark.parametrize(
    ("changes", "overrides", "error", "message"),
    [
        ({"retrievers": ("bm26",)}, [], SettingsError, "Did you mean 'bm25'"),
        ({"retrievers": ()}, [], SettingsError, "at least one"),
        ({"retrievers": ("oracle",), "bounds": False}, [], SettingsError, "--retriever beside the oracle"),
        ({"retrievers": ("oracle",), "corpora": (Path("c"),)}, [], SettingsError, "beside the oracle"),
        ({"rerankers": ("nope",)}, [], SettingsError, "There is no reranker 'nope'"),
        ({"readers": ("minilm-lat",)}, [], SettingsError, "Did you mean 'minilm-late'"),
        ({"split": "validation"}, [], InputError, "split 'validation' of the release has no question"),
        ({"release": Path("absent")}, [], InputError, "There is no release at absent"),
        ({"corpora": (Path("absent.jsonl"),)}, [], InputError, "There is no corpus"),
        ({"corpora": (Path("a/c.jsonl"), Path("b/c"))}, [], SettingsError, "same name"),
        ({}, ["benchmark.metrics=['Hut@1']"], SettingsError, "Did you mean 'Hit'"),
        ({"corpora": (Path("c"),)}, ["readers=[]"], SettingsError, "no reader with role 'labeler'"),
        ({}, ["benchmark.compare=['Hit@7']"], SettingsError, "neither in benchmark.metrics"),
    ],
)
def test_bad_requests(release: Path, tmp_path: Path, changes, overrides, error, message: str) -> None:
    arguments = {"release": release, "split": "test", "retrievers": ("bm25",), **changes}
    with pytest.raises(error, match=message):
        run_benchmark(BenchmarkRequest(**arguments), load("embedded", [*QUICK, *overrides]).settings, tmp_path / "out")
    assert not (tmp_path / "out" / "stages").exists(), "before any work"


def test_results_do_not_go_into_a_file(release: Path, tmp_path: Path) -> None:
    (tmp_path / "out").touch()
    with pytest.raises(SettingsError, match="out is a file: choose another --out"):
        run_benchmark(BenchmarkRequest(release), load("embedded").settings, tmp_path / "out")

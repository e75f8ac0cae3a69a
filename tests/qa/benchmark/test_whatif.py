"""The order of systems under other labels, against benchmarks of releases that have these labels."""

import json
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy import stats

from quit.dataset.release import open_release
from quit.errors import InputError
from quit.export.card_facts import read_baselines
from quit.qa.benchmark.benchmark import BenchmarkRequest, run_benchmark
from quit.qa.benchmark.whatif import order_pieces, orders
from quit.qa.settings import load
from quit.release.whatif import opened
from tests.release import small
from tests.release.test_whatif import READERS, drawn, world


def _release(folder: Path, right: dict, least: int, **identities: str) -> Path:
    content = {"settings": {"passages": {"hints": 2}, "split": {"near_duplicate": 0.8}}}
    content["settings"] |= {"review": {"splits": ["dev", "test"]}, "release": {}}
    readers = [{**asdict(reader), "identity": identities.get(reader.name, reader.identity)} for reader in READERS]
    return small.freeze(folder, world(right, least), readers=readers, **content).path


@pytest.mark.parametrize("policy", ["zero", "skip"])
def test_means_and_order_are_those_of_a_benchmark_on_the_other_labels(tmp_path: Path, policy: str) -> None:
    right = drawn(5)
    settings = load("embedded", ["benchmark.resamples=200", f"benchmark.without_relevant={policy}"]).settings
    places = {least: _release(tmp_path / f"release{least}", right, least) for least in (1, 2)}
    results = {}
    for least, place in places.items():
        run_benchmark(
            BenchmarkRequest(place, "all", ("bm25", "minilm", "late"), ("late",)), settings, tmp_path / f"{least}"
        )
        rows = pq.read_table(tmp_path / f"{least}" / "results.parquet").to_pylist()
        results[least] = {(row["metric"], row["retriever"], row["reranker"]): row["value"] for row in rows}
    answered = opened(places[1])
    metrics = orders(tmp_path / "1", open_release(places[1]), answered, answered.rule(least=2))
    assert [row["metric"] for row in metrics] == [
        name for name in settings.benchmark.metrics if "nDCG" in name or "rel=2" in name
    ]
    for row in metrics:
        assert len(row["systems"]) == 6  # without oracles
        for each in row["systems"]:
            key = (row["metric"], *(each["system"] + " + ").split(" + ")[:2])
            assert (each["now"], each["then"]) == pytest.approx((results[1][key], results[2][key]))
        now, then = (np.array([round(each[when], 9) for each in row["systems"]]) for when in ("now", "then"))
        assert list(now) == sorted(now, reverse=True)
        truth = stats.kendalltau(now, then).statistic
        assert row["tau"] == (None if np.isnan(truth) else pytest.approx(truth))
        pairs = pairwise(row["systems"])
        assert row["swaps"] == [
            [a["system"], b["system"]] for a, b in pairs if a["now"] - b["now"] > 1e-9 and b["then"] - a["then"] > 1e-9
        ]
    assert any(row["swaps"] for row in metrics) and any(row["tau"] is None or row["tau"] < 1 for row in metrics)
    assert len(order_pieces(metrics)[0].rows) == len(metrics)
    json.dumps(metrics, allow_nan=False)


def test_the_rule_in_force_keeps_every_order(tmp_path: Path) -> None:
    place = _release(tmp_path / "release", drawn(0), 1)
    settings = load("embedded", ["benchmark.resamples=200"]).settings
    run_benchmark(BenchmarkRequest(place, "all", ("bm25", "minilm")), settings, tmp_path / "out")
    answered = opened(place)
    for row in orders(tmp_path / "out", open_release(place), answered, answered.rule()):
        assert row["tau"] is None or (row["tau"], row["low"], row["high"]) == (1, 1, 1)
        assert not row["swaps"] and all(each["now"] == each["then"] for each in row["systems"])
    other = _release(tmp_path / "other", drawn(1), 1)
    with pytest.raises(InputError, match="not on this one"):
        orders(tmp_path / "out", open_release(other), opened(other), answered.rule())


def test_a_system_of_a_labelers_family_is_marked_and_scored_without_its_labels(tmp_path: Path) -> None:
    """Labeler b is of the retriever's family. Scores without b are those of a release that b did not label."""
    right, settings = drawn(5), load("embedded", ["benchmark.resamples=100"]).settings
    without_b = {key: [a, False, c] for key, (a, _, c) in right.items()}
    values = {}
    for name, labels in (("all", right), ("without", without_b)):
        place = _release(tmp_path / name, labels, 1, b="minilm-x@1/all-MiniLM-L6-v2")
        request = BenchmarkRequest(place, "all", ("bm25", "minilm"), (), ("minilm-names",))
        run_benchmark(request, settings, tmp_path / f"out-{name}")
        for row in pq.read_table(tmp_path / f"out-{name}" / "results.parquet").to_pylist():
            key = tuple(row[column] for column in ("retriever", "reranker", "reader", "strategy", "k", "metric"))
            values.setdefault((name, row["corpus"]), {})[key] = row["value"]
    truth = {key: value for key, value in values["without", "release"].items() if "oracle" not in key}
    assert values["all", "release, without b"] == pytest.approx(truth)
    assert any(values["all", "release"][key] != value for key, value in truth.items())
    html = (tmp_path / "out-all" / "leaderboard.html").read_text()
    assert "<td>minilm †</td>" in html and "<td>bm25</td>" in html
    assert "</strong> minilm is of the family of b; minilm-names is of the family of b. Such scores" in html
    baselines = read_baselines(tmp_path / "out-all", open_release(tmp_path / "all").content_id)
    systems = [name for name in baselines.rows if "oracle" not in name and "names" not in name]
    assert systems == ["bm25", "minilm †", "minilm †, labels without b"]

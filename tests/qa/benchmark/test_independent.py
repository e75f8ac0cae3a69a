"""Labels without some labelers, against a benchmark of a release that these did not label."""

from dataclasses import asdict
from itertools import product
from pathlib import Path
from random import Random

import pyarrow.parquet as pq
import pytest

from quit.dataset.release import open_release
from quit.export.baselines import read_baselines
from quit.qa.benchmark.benchmark import BenchmarkRequest, run_benchmark
from quit.qa.settings import load
from tests.release import small

NAMES = ("a", "b", "c")
READERS = tuple(small.ReaderInfo(name, "labeler", f"{name}@1", "embedded") for name in NAMES)
Right = dict[tuple[str, str], list[bool]]
"""(question, permutation) -> whether a, b and c are right."""


def drawn(seed: int) -> Right:
    """Return who is right, by chance."""
    dice = Random(seed)
    return {key: [dice.random() < 0.4 for _ in NAMES] for key in product(small.SPLIT, small.PERMUTATIONS)}


def _release(folder: Path, right: Right, **identities: str) -> Path:
    """Freeze the small release, where three labelers are right as told."""
    data = {name: rows for name, rows in small.rows().items() if "/" not in name}
    data |= {f"answers/{name}": [] for name in NAMES}
    for row in data["labels"]:
        key = {"question_id": row["question_id"], "permutation": row["permutation"]}
        row["labelers"] = [name for name, each in zip(NAMES, right[*key.values()], strict=True) if each]
        row["label"] = 2 if row["labelers"] else 1
        for name in NAMES:
            answer = small.GOLD[row["question_id"]] if name in row["labelers"] else "Wrong"
            data[f"answers/{name}"].append({**key, "reader": name, "answer": answer, "raw": answer, "producer": "x"})
    readers = [{**asdict(reader), "identity": identities.get(reader.name, reader.identity)} for reader in READERS]
    return small.freeze(folder, data, readers=readers).path


def test_a_system_of_a_labelers_family_is_marked_and_scored_without_its_labels(tmp_path: Path) -> None:
    """Labeler b is of the retriever's family. Scores without b are those of a release that b did not label."""
    right, settings = drawn(5), load("embedded", ["benchmark.resamples=100"]).settings
    without_b = {key: [a, False, c] for key, (a, _, c) in right.items()}
    values = {}
    for name, labels in (("all", right), ("without", without_b)):
        place = _release(tmp_path / name, labels, b="minilm-x@1/all-MiniLM-L6-v2")
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

"""The command line: the names, the grid."""

import json
from pathlib import Path

from tests.conftest import call_quit


def test_what_can_be_named_is_listed() -> None:
    found = json.loads(call_quit("benchmark", "list", "--json").stdout)
    assert set(found) == {"retrievers", "rerankers", "readers"} and "bm25" in found["retrievers"]
    assert found["readers"]["minilm-late"] == "profile embedded"


def test_the_grid_prints_the_best_weights_first(release: Path, tmp_path: Path) -> None:
    grid = ("benchmark", "grid", "-r", release, "-o", tmp_path / "out", "--split", "test", "--reader", "minilm-late")
    found = json.loads(call_quit(*grid, "--set", "benchmark.grid=[0.6,0.2]", "--json").stdout)
    assert {(row["alpha"], row["beta"]) for row in found["means"]} == {(0.6, 0.4), (0.2, 0.8)}
    assert {row["k"] for row in found["rows"]} == {3, 5}
    assert found["means"][0]["EM"] >= found["means"][1]["EM"]
    assert str(tmp_path / "out" / "grid.parquet") in call_quit(*grid, "--quiet").stdout

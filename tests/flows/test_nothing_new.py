"""Flows that find nothing new say so by their state's name, and do nothing: release, benchmark, label update."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from prefect import Flow, State

from flows.benchmark import benchmark
from flows.release import release
from flows.review import label_update
from quit.dataset.release import verify
from quit.export import verify as verify_export

pytestmark = pytest.mark.slow


def test_releases_benchmarks_and_label_updates_are_not_made_twice(built: Path, tmp_path: Path) -> None:
    workspace = shutil.copytree(built, tmp_path / "W")
    out = str(workspace / "benchmark")

    def run(flow: Flow, *arguments: str, **settings: Any) -> list[str]:
        state: State = flow(str(workspace), *arguments, **settings, return_state=True)
        return [state.name or "", state.message or ""]

    found: dict[str, Any] = {"before": run(benchmark, out)}
    at_once = {"formats": ["trec"], "out": str(workspace / "at-once")}
    found["release"] = [run(release, "nightly-%Y", **at_once), run(release, "again-%Y")]
    exports = {"formats": ["release-json"], "out": str(workspace / "exports")}
    found["export"] = [run(release, "late-%Y", **exports) for _ in range(2)]
    settings = {"retrievers": ["bm25"], "overrides": ["benchmark.resamples=100"]}
    found["benchmark"] = [run(benchmark, out, **settings) for _ in range(2)]
    settings["overrides"] = ["benchmark.resamples=100", "benchmark.depth=50"]
    found["other"] = run(benchmark, out, **settings)
    found["label"] = run(label_update)
    assert found["before"][0] == "Failed" and "no release to benchmark yet" in found["before"][1]
    names = [name for name, _ in found["release"]]
    assert names == ["Completed", "Nothing new"]
    assert "holds these very tables" in found["release"][1][1]
    [frozen] = (workspace / "releases").iterdir()
    assert verify(frozen).facts["statistics"]["summary"][-1]["semantic_similarity"] is not None
    # frozen before, exported only now: what a retry does after an export that failed
    assert [name for name, _ in found["export"]] == ["Completed", "Nothing new"]
    assert verify_export(workspace / "exports" / "release-json").files
    assert verify_export(workspace / "at-once" / "trec").files
    assert [name for name, _ in found["benchmark"]] == ["Completed", "Nothing new"]
    assert found["other"][0] == "Completed"  # another setting is something new
    assert found["label"][0] == "Nothing new"  # nobody has reviewed anything
    assert (workspace / "benchmark" / "leaderboard.html").is_file()

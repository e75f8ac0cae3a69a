"""Flows that find nothing new say so by their state's name, and do nothing: release, benchmark, label update."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from quit.history import runs_of
from quit.workspace import Workspace
from tests.conftest import ROOT

pytestmark = pytest.mark.slow

CALLS = """
import json, sys
from flows.benchmark import benchmark
from flows.release import release
from flows.review import label_update

workspace = sys.argv[1]
out = workspace + "/benchmark"

def told(state):
    return [state.name, state.message or ""]

found = {"before": told(benchmark(workspace, out, return_state=True))}
found["release"] = [
    told(release(workspace, name, return_state=True)) for name in ("nightly-%Y", "again-%Y")
]
found["export"] = [
    told(release(workspace, "late-%Y", formats=["release-json"], out=workspace + "/exports", return_state=True)) for _ in range(2)
]
settings = {"retrievers": ["bm25"], "overrides": ["benchmark.resamples=100"]}
found["benchmark"] = [told(benchmark(workspace, out, return_state=True, **settings)) for _ in range(2)]
settings["overrides"] = ["benchmark.resamples=100", "benchmark.depth=50"]
found["other"] = told(benchmark(workspace, out, return_state=True, **settings))
found["label"] = told(label_update(workspace, return_state=True))
print(json.dumps(found))
"""


def test_releases_benchmarks_and_label_updates_are_not_made_twice(
    built: Path, tmp_path: Path, prefect_home: Path
) -> None:
    workspace = shutil.copytree(built, tmp_path / "W")
    (workspace / "runs.jsonl").unlink(missing_ok=True)
    environment = {
        **os.environ,
        "PREFECT_HOME": str(prefect_home),
        "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]),
    }
    environment |= {"PREFECT_LOGGING_LEVEL": "CRITICAL", "DO_NOT_TRACK": "1"}
    done = subprocess.run(
        [sys.executable, "-c", CALLS, str(workspace)],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["before"][0] == "Failed" and "no release to benchmark yet" in found["before"][1]
    names = [name for name, _ in found["release"]]
    assert names == ["Completed", "Nothing new"]
    assert "holds these very tables" in found["release"][1][1]
    assert len(list((workspace / "releases").iterdir())) == 1
    # frozen before, exported only now: what a retry does after an export that failed
    assert [name for name, _ in found["export"]] == ["Completed", "Nothing new"]
    assert (workspace / "exports" / "release-json" / "manifest.json").is_file()
    assert [name for name, _ in found["benchmark"]] == ["Completed", "Nothing new"]
    assert found["other"][0] == "Completed"  # another setting is something new
    assert found["label"][0] == "Nothing new"  # nobody has reviewed anything
    assert (workspace / "benchmark" / "leaderboard.html").is_file()
    outcomes = [(one["flow"], one["outcome"]) for one in runs_of(Workspace.open(workspace))]
    assert outcomes[:3] == [("benchmark", "failed"), ("release", "done"), ("release", "nothing new")]

"""The job of QA systems: a benchmark that is there already is not run again."""

import inspect
from pathlib import Path
from typing import Any

import pytest

from quit.common.files import write_json
from quit.qa import jobs
from tests.release.small import freeze, rows

OTHERS: dict[str, Any] = {
    "split": "dev",
    "retrievers": ["minilm"],
    "rerankers": ["oracle"],
    "readers": ["minilm-names"],
    "corpora": ["corpus.jsonl"],
    "bounds": False,
    "profile": "profile.toml",
    "settings": ["benchmark.depth=50"],
}
"""Another value of each argument of a benchmark that its results depend on."""


def test_a_benchmark_with_any_other_argument_is_no_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("profile.toml").write_text("[benchmark]\ndepth = 7\n")
    freeze(tmp_path, rows())
    arguments = inspect.signature(jobs.benchmark).parameters
    assert OTHERS.keys() == arguments.keys() - {"release", "out", "anew", "step"}

    def step(_name: str, _function: object, _request: object, _settings: object, out: Path) -> dict[str, Any]:
        for name, value in {"results": [1], "leaderboard": 0, "run": {}}.items():
            write_json(out / f"{name}.{'html' if name == 'leaderboard' else 'json'}", value)
        return {"results": [1], "seconds": {"read": 1.0}}

    def nothing_new(**changes: Any) -> bool:
        job = jobs.benchmark(str(tmp_path), "out", step=step, **changes)
        assert job.result["results"] == [1]
        return job.nothing_new is not None

    assert not nothing_new() and nothing_new()
    for name, value in OTHERS.items():
        assert [nothing_new(**{name: value}), nothing_new(), nothing_new()] == [False, False, True], name

"""Jobs, before they need a model."""

import inspect
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from quit.common.files import write_json
from quit.errors import InputError
from quit.library import jobs
from tests.building import plan_build
from tests.release.small import freeze, rows


def test_a_percent_sign_in_a_releases_folder_is_no_date(tmp_path: Path) -> None:
    plan_build(tmp_path / "W").begin()
    folder = tmp_path / "50%done"
    folder.mkdir()
    (folder / "mine.txt").touch()
    with pytest.raises(InputError, match="50%done"):  # its content is in the way, not that of 5026one
        jobs.release(str(tmp_path / "W"), "v1", folder=str(folder))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("nightly-%Y-%m-%d", "nightly-2026-01-02"),
        ("%Y%m%d-%H%M", "20260102-0304"),
        *((name, name) for name in ("50%-sample", "50%s", "100%", "5%j", "90%Z%z%%", "v1")),
    ],
)
def test_only_year_month_day_hour_and_minute_of_a_releases_name_are_dates(name: str, expected: str) -> None:
    assert jobs.dated_name(name, datetime(2026, 1, 2, 3, 4)) == expected


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
        for name, value in {"results": [1], "leaderboard": 0, "run": {"wrong zeros": {"read": 2}}}.items():
            write_json(out / f"{name}.{'html' if name == 'leaderboard' else 'json'}", value)
        return {"results": [1], "seconds": {"read": 1.0}, "wrong_zeros": {"read": 2}}

    def nothing_new(**changes: Any) -> bool:
        job = jobs.benchmark(str(tmp_path), "out", step=step, **changes)
        assert (job.result["results"], job.result["wrong_zeros"]) == ([1], {"read": 2})
        return job.nothing_new is not None

    assert not nothing_new() and nothing_new()
    for name, value in OTHERS.items():
        assert [nothing_new(**{name: value}), nothing_new(), nothing_new()] == [False, False, True], name


@pytest.mark.parametrize("refused", [("push",), ("push", "pull")])
def test_a_refused_push_keeps_nobodys_work_from_being_pulled(tmp_path: Path, monkeypatch, refused) -> None:
    plan_build(tmp_path / "W").begin()
    tried = []

    def step(name: str, *_: object) -> dict:
        tried.append(name)
        if name in refused:
            raise InputError(f"the {name} is refused")
        return {}

    with pytest.raises(InputError, match="the push is refused"):
        jobs.review_sync(str(tmp_path / "W"), step=step)
    assert tried == ["push", "pull"]

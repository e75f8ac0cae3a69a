"""Jobs, before they need a model."""

from datetime import datetime
from pathlib import Path

import pytest

from quit.annotation.reports import PullReport, PushReport
from quit.errors import InputError
from quit.library import jobs
from tests.building import plan_build


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


@pytest.mark.parametrize(
    ("push", "pull", "is_new"),
    [
        (PushReport(unchanged=4, gone=1, problems=["one"]), PullReport(tasks=4, done=4, unclear=1), False),
        *((PushReport(**{name: 1}), PullReport(), True) for name in ("created", "new", "changed", "remade")),
        (PushReport(), PullReport(rows=1), True),
    ],
)
def test_a_sync_says_when_there_was_nothing_new(push, pull, is_new: bool, tmp_path: Path) -> None:
    plan_build(tmp_path / "W").begin()
    outcome = jobs.review_sync(str(tmp_path / "W"), step=lambda name, *_: {"push": push, "pull": pull}[name])
    assert outcome.result == {"push": push, "pull": pull} and (outcome.nothing_new is None) is is_new

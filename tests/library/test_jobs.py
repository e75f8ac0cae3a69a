"""Jobs, before they need a model."""

from datetime import datetime
from pathlib import Path

import pytest

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

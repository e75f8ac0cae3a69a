"""Jobs, before they need a model."""

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

"""A folder is of one kind, and of one run at a time."""

from pathlib import Path

import pytest

from quit.errors import SettingsError, WorkspaceError
from quit.qa.folders import building, is_own


def test_a_new_folder_in_which_nothing_was_written_goes_again(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("new", "empty"):
        with pytest.raises(KeyboardInterrupt), building(tmp_path / name, "index"):
            assert is_own(tmp_path / name, "index")
            raise KeyboardInterrupt
    assert [path.name for path in tmp_path.iterdir()] == ["empty"] and not is_own(tmp_path / "empty", "index")


def test_a_folder_keeps_its_kind_and_what_is_not_ours_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "F"
    with building(folder, "index"):
        (folder / "index.json").touch()
        with pytest.raises(WorkspaceError, match="Another run is at work"), building(folder, "index"):
            pytest.fail("two runs in one folder")
    with building(folder, "index"):
        assert is_own(folder, "index") and not is_own(folder, "graph")
    with pytest.raises(SettingsError, match="holds no graph"), building(folder, "graph"):
        pytest.fail("an index is no graph")
    with pytest.raises(SettingsError, match="is a file"), building(folder / "index.json", "index"):
        pytest.fail("a file is no folder")
    assert [path.name for path in folder.glob("[!.]*")] == ["index.json"]

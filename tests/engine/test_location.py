"""A place that is or will be a workspace."""

from pathlib import Path

import pytest

from quit.engine.location import Location
from quit.errors import WorkspaceError
from tests.paths import FEW
from tests.running import call_quit


@pytest.mark.parametrize(
    ("place", "fault"), [("file", "file is a file, not a workspace."), ("file/below", "Not a directory")]
)
def test_a_file_in_place_of_a_folder_is_named_as_one(place: str, fault: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    location = Location(tmp_path / place)
    assert location.build is None
    with pytest.raises(WorkspaceError, match=fault):
        Location.create(location)
    error = call_quit("build", "-w", location, "--source", "starter", "-p", FEW, code=7).err
    assert fault in error and "build.json" not in error
    assert (tmp_path / "file").read_bytes() == b""


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").touch()
    with pytest.raises(WorkspaceError, match="holds other files and is not a workspace"):
        Location.create(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_lock_ends_also_where_the_note_of_its_holder_cannot_be_removed(tmp_path: Path) -> None:
    location = Location.create(tmp_path / "W")
    with pytest.raises(IsADirectoryError), location.lock(0):
        (location.path / "lock.json").unlink()
        (location.path / "lock.json").mkdir()
    (location.path / "lock.json").rmdir()
    with location.lock(0):
        assert "process" in location.holder

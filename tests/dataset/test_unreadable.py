"""A table that cannot be read: what is raised follows from whose it is, and says what helps, however it is read."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from quit.dataset.files import TableFiles, current_files
from quit.engine.reading import TableReader
from quit.errors import InputError, QuitError, WorkspaceError
from tests.release import small
from tests.report import tiny

OF_FILES: dict[str, Callable[[TableFiles], Any]] = {
    "read": lambda files: files.read("labels"),
    "batches": lambda files: [*files.batches("labels")],
    "rows": lambda files: files.rows("labels"),
    "paged": lambda files: files.paged("labels", ["label"]),
    "passages": lambda files: files.passages().read_all(),
}
OF_READER: dict[str, Callable[[TableReader], Any]] = {
    "read": lambda reader: reader.read("labels"),
    "few": lambda reader: reader.read("labels", question_ids=["q1"]),
    "connect": lambda reader: reader.connect(tables=["labels"]).execute("FROM labels").fetchall(),
}


def cut(paths: list[Path]) -> None:
    for path in paths:
        path.write_bytes(path.read_bytes()[:-7])


@pytest.fixture(params=["workspace", "release"])
def owned(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Any, TableFiles, type[QuitError], str]:
    """Tables, their files, and the error that is due where one of them cannot be read."""
    if request.param == "workspace":
        workspace = tiny.workspace(tmp_path / "W")
        return workspace, current_files(workspace), WorkspaceError, "labels/part-.* Build it again: quit build -w "
    release = small.freeze(tmp_path, small.rows())
    return release, release.files, InputError, "labels.parquet cannot be read: .* Take it from a copy of the release"


@pytest.mark.parametrize("way", OF_FILES)
def test_files_that_were_cut_short_are_named_with_what_helps(owned, way) -> None:
    _, files, error, message = owned
    cut(files.parts["labels"])
    with pytest.raises(error, match=message):
        OF_FILES[way](files)


@pytest.mark.parametrize("way", OF_READER)
def test_tables_that_were_cut_short_are_named_with_what_helps(owned, way) -> None:
    tables, files, error, message = owned
    cut(files.parts["labels"])
    with pytest.raises(error, match=message):
        OF_READER[way](tables)


def test_pages_that_were_cut_short_meanwhile_are_named_too(owned) -> None:
    _, files, error, message = owned
    pages = files.paged("labels", ["question_id", "label"])
    cut(files.parts["labels"])
    with pytest.raises(error, match=message):
        pages.slice(0, 1)

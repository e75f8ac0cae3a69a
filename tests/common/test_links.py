"""Links in folders: reading follows them; removing and publishing name them, and what they lead to stays."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from quit.common.files import files_to_read
from quit.common.folders import aside, put_in_place
from quit.engine import repair
from quit.engine.pipeline import Pipeline
from quit.engine.workspace import Workspace
from quit.errors import InputError, QuitError
from quit.export.push import published_files
from quit.models.folders import folder_checksum
from quit.sources import SourceRef, source_checksum
from tests.comparing import files_of
from tests.report import tiny

READERS = {
    "source": lambda folder: source_checksum(SourceRef("huggingface", folder)),
    "model": folder_checksum,
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("linked", ["file", "folder"])
def test_what_is_read_through_a_link_counts(tmp_path: Path, reader: str, linked: str) -> None:
    """A folder with links is known by the same digits as one of the files, and by others when these change."""
    for name in ("plain", "disk"):
        (tmp_path / name / "data").mkdir(parents=True)
        (tmp_path / name / "data" / "train.parquet").write_bytes(b"1")
    folder, target = tmp_path / "linked", tmp_path / "disk" / "data"
    folder.mkdir()
    if linked == "file":
        (folder / "data").mkdir()
        (folder / "data" / "train.parquet").symlink_to(target / "train.parquet")
    else:
        (folder / "data").symlink_to(target)
    identity = READERS[reader](folder)
    assert identity == READERS[reader](tmp_path / "plain")
    (target / "train.parquet").write_bytes(b"22")
    assert READERS[reader](folder) != identity
    (target / "train.parquet").unlink()
    if linked == "file":  # the disk is gone: not a folder without that file
        with pytest.raises((QuitError, OSError)):
            READERS[reader](folder)


def test_folders_that_hold_one_another_are_read_once(tmp_path: Path) -> None:
    for one, other in (("a", "b"), ("b", "a")):
        (tmp_path / one).mkdir()
        (tmp_path / one / f"{one}.txt").touch()
        (tmp_path / one / "other").symlink_to(tmp_path / other)
    names = sorted(path.relative_to(tmp_path / "a").as_posix() for path in files_to_read(tmp_path / "a"))
    assert names == ["a.txt", "other/b.txt"]


def _replaced(folder: Path, _: Workspace) -> None:
    with aside(folder) as draft:
        put_in_place(draft, folder)


def _stale(folder: Path, workspace: Workspace) -> None:
    run = SimpleNamespace(key="judge")
    pipeline = SimpleNamespace(workspace=workspace, folder=lambda _: folder, is_done=lambda _: False)
    Pipeline.discard_stale(pipeline, run)  # type: ignore[arg-type]


def _damaged(folder: Path, workspace: Workspace) -> None:
    part = next(folder.rglob("part-*.parquet"), None) or next((folder / "verdicts").glob("part-*.parquet"))
    part.write_bytes(part.read_bytes() + b"x")
    repair.discard_damaged(workspace, folder, ["verdicts"])


REMOVERS: dict[str, Callable[[Path, Workspace], object]] = {
    "garbage": lambda folder, workspace: workspace.discard(folder),
    "stale tables": _stale,
    "damaged parts": _damaged,
    "fresh replies": lambda folder, workspace: repair.discard_to_compare(workspace, folder),
    "a folder in its place": _replaced,
    "published": lambda folder, _: published_files(folder),
}


@pytest.mark.parametrize("remover", REMOVERS)
def test_what_a_link_leads_to_is_neither_removed_nor_published(tmp_path: Path, remover: str) -> None:
    workspace = tiny.workspace(tmp_path / "W")
    folder, _ = workspace.current()["judge"]
    (folder / "verdicts").rename(tmp_path / "disk")
    (folder / "verdicts").symlink_to(tmp_path / "disk")
    before = files_of(folder)
    with pytest.raises(InputError, match=f"{folder / 'verdicts'} is a link: "):
        REMOVERS[remover](folder, workspace)
    after = files_of(folder)
    assert after.keys() == before.keys() and (folder / "verdicts").is_symlink()
    assert [*(tmp_path / "disk").iterdir()]

"""Every file that a workspace's copy lost, or has otherwise, is named, through links too."""

import shutil
from itertools import groupby, zip_longest
from pathlib import Path

import pytest

from quit.engine.parts import write_log_part
from quit.engine.workspace import Workspace
from quit.errors import QuitError
from quit.operations.damage import faults_of
from quit.review.store import ReviewStore
from tests.release import small
from tests.report import tiny
from tests.rows import table_of
from tests.running import run_process

LINKS = ["tables", "reviews", "overrides", "releases", "releases/v1", "releases/v1/tables", "tables/09_judge"]


def _faults(folder: Path) -> list[str]:
    return list(faults_of(Workspace.open(folder)))


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with two pulls that labels rest on, two overrides and a release."""
    folder = tmp_path_factory.mktemp("damage") / "W"
    store = ReviewStore(tiny.workspace(folder, shards=2))
    store.append([{**row, "review_id": f"again-{row['review_id']}"} for row in tiny.reviews()])
    store.set_applied(store.parts)
    (folder / "overrides").mkdir()
    for number in (1, 2):
        rows = table_of("overrides", [{"override_id": f"o{number}"}])
        write_log_part(folder / "overrides" / f"part-0000{number}.parquet", rows)
    small.freeze(folder / "releases" / "v1", small.rows())
    assert _faults(folder) == []
    return folder


def test_a_log_with_a_file_of_another_name_is_reported_whole(original: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(original, tmp_path / "W"))
    shutil.copy(folder / "overrides" / "part-00002.parquet", folder / "overrides" / "part-copy.parquet")
    (folder / "overrides" / "part-00001.parquet").unlink()
    faults = _faults(folder)
    assert [text.rpartition("/")[2].partition(" ")[0] for text in faults] == ["part-copy.parquet", "part-00001.parquet"]


@pytest.mark.parametrize("links", [[], LINKS[:4]])
def test_every_file_that_is_missing_or_changed_is_named(original: Path, links: list[str], tmp_path: Path) -> None:
    copy = shutil.copytree(original, tmp_path / "W")
    for number, link in enumerate(links):
        shutil.move(copy / link, tmp_path / f"disk{number}")
        (copy / link).symlink_to(tmp_path / f"disk{number}")
    assert _faults(copy) == []
    names = [path.relative_to(original) for path in original.rglob("*") if path.parent != original and path.is_file()]
    names = [
        name for name in names if name.name != "applied.json" and name.as_posix() != "overrides/part-00002.parquet"
    ]
    assert len(names) > 50 and {name.parts[0] for name in names} == {"tables", "reviews", "overrides", "releases"}
    ends = {name: name.name if name.name == "release.json" else "/".join(name.parts[-2:]) for name in names}
    folders = [list(files) for _, files in groupby(sorted(names), lambda name: name.parts[:2])]
    for files in (list(filter(None, files)) for files in zip_longest(*folders)):  # of each folder one
        whole = {name: (copy / name).read_bytes() for name in files}
        for change in (False, True):
            for name, data in whole.items():
                (copy / name).unlink(missing_ok=True)
                if change:
                    (copy / name).write_bytes(data[:9] + bytes([data[9] ^ 1]) + data[10:])
            unnamed = set(files)
            while unnamed:
                try:
                    faults = _faults(copy)
                except QuitError as error:  # which hides the others
                    faults = [str(error)]
                named = {name for name in unnamed if any(ends[name] in fault for fault in faults)}
                assert named, (unnamed, faults)
                unnamed -= named
                for name in named:
                    (copy / name).write_bytes(whole[name])


@pytest.mark.parametrize("gone", [*LINKS, "state.json"])
def test_a_folder_that_is_missing_or_a_link_to_nothing_is_named(original: Path, gone: str, tmp_path: Path) -> None:
    copy = shutil.copytree(original, tmp_path / "W")
    shutil.move(copy / gone, tmp_path / "gone")
    (copy / gone).symlink_to(tmp_path / "nowhere")
    assert _faults(copy)
    (copy / gone).unlink()
    if gone not in ("reviews", "overrides", "releases", "releases/v1"):  # nothing else tells of those
        assert _faults(copy)


def test_what_was_added_to_a_release_behind_a_link_is_named(original: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(original, tmp_path / "W")
    tables = copy / "releases" / "v1" / "tables"
    shutil.move(tables, tmp_path / "disk")
    tables.symlink_to(tmp_path / "disk")
    (tmp_path / "disk" / "answers" / "extra.parquet").write_text("x")
    [fault] = _faults(copy)
    assert "tables/answers/extra.parquet: is not part of the release" in fault


@pytest.mark.parametrize("tool", ["rsync", "cp"])
def test_a_copy_of_linked_folders_is_whole_and_needs_no_link(original: Path, tool: str, tmp_path: Path) -> None:
    if not shutil.which(tool):
        pytest.skip(f"{tool} is not installed")
    linked, copy = shutil.copytree(original, tmp_path / "W"), tmp_path / "copy"
    for name in ("tables", "reviews", "releases"):
        shutil.move(linked / name, tmp_path / name)
        (linked / name).symlink_to(tmp_path / name)
    (tmp_path / "reviews" / "server").mkdir()
    (tmp_path / "reviews" / "server" / "account.json").write_text("secret")
    if tool == "rsync":
        page = Path(__file__).parents[2] / "docs" / "howto" / "operations.md"
        [line] = [line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("flock ")]
        run_process("bash", "-ec", line.replace("workspace/", "W/"), cwd=tmp_path)
        assert not (copy / "reviews" / "server").exists()
    else:
        run_process("flock", linked / "lock", "cp", "-aL", linked, copy)
    for name in ("tables", "reviews", "releases"):
        shutil.rmtree(tmp_path / name)
    assert _faults(copy) == []
    assert Workspace.open(copy).read("labels").equals(Workspace.open(original).read("labels"))
    assert len(ReviewStore(Workspace.open(copy)).read()) == 2 * len(tiny.reviews())

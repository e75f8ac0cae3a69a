"""Backups: what is in them, that they come back whole or not at all, and that another tool reads them."""

import io
import stat
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from quit.engine.workspace import Workspace
from quit.errors import InputError, WorkspaceError
from quit.operations.backup import backup, restore
from tests.comparing import files_of
from tests.report import tiny
from tests.running import run_process


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return tiny.workspace(tmp_path / "W")


def test_a_restored_workspace_has_the_same_files(workspace, tmp_path) -> None:
    (workspace.path / "releases" / "v1").mkdir(parents=True)
    (workspace.path / "releases" / "v1" / "release.json").write_text("{}")
    written = backup(workspace, tmp_path / "b.tar")
    back = restore(tmp_path / "b.tar", tmp_path / "W2")
    before = {name: data for name, data in files_of(workspace.path).items() if name not in ("lock", "lock.json")}
    assert files_of(tmp_path / "W2") == before
    assert "releases/v1/release.json" in before
    assert any(name.startswith("reviews/part-") for name in before)
    assert back.files == written.files == len(before)
    assert Workspace.open(tmp_path / "W2").read("labels").equals(workspace.read("labels"))


def test_tar_itself_reads_a_backup_and_another_one_has_the_same_bytes(workspace, tmp_path) -> None:
    for name in ("a.tar", "b.tar"):
        backup(workspace, tmp_path / name)
    assert (tmp_path / "a.tar").read_bytes() == (tmp_path / "b.tar").read_bytes()
    assert stat.S_IMODE((tmp_path / "a.tar").stat().st_mode) == 0o600  # only the owner reads it
    assert run_process("tar", "-tf", tmp_path / "b.tar").out.split("\n")[-2] == "SHA256SUMS"
    (tmp_path / "plain").mkdir()
    run_process("tar", "-xf", tmp_path / "b.tar", "-C", tmp_path / "plain")
    run_process("sha256sum", "--strict", "--check", "SHA256SUMS", cwd=tmp_path / "plain")


def test_accounts_secrets_locks_and_leftovers_stay_out(workspace, tmp_path) -> None:
    server = workspace.path / "reviews" / "server"
    server.mkdir(parents=True)
    (server / "account.json").write_text('{"token": "very-secret-token"}')
    (workspace.path / "reviews" / ".x.parquet.12-34.tmp").write_text("half")
    (workspace.path / "outside").symlink_to("/etc/hostname")
    backup(workspace, tmp_path / "b.tar")
    assert b"very-secret-token" not in (tmp_path / "b.tar").read_bytes()
    with tarfile.open(tmp_path / "b.tar") as tar:
        names = tar.getnames()
    assert not {"lock", "lock.json", "outside"} & {*names}
    assert not [name for name in names if name.endswith(".tmp") or "server" in name]


def test_older_fingerprints_are_kept_only_on_request(workspace, tmp_path) -> None:
    old = next((workspace.path / "tables").glob("*_filter")) / "0000000000000000" / "rejects"
    old.mkdir(parents=True)
    (old / "part-00000-of-00001.parquet").write_bytes(b"x")
    some, all_files = (backup(workspace, tmp_path / f"{all}.tar", everything=all) for all in (False, True))
    assert some.old == 1 and all_files.files == some.files + 1


def test_a_damaged_workspace_is_not_backed_up(workspace, tmp_path) -> None:
    part = next((workspace.path / "tables").rglob("labels/*.parquet"))
    part.write_bytes(part.read_bytes()[:-1] + b"x")
    with pytest.raises(WorkspaceError, match=r"part-.*is damaged"):
        backup(workspace, tmp_path / "b.tar")
    part.unlink()
    with pytest.raises(WorkspaceError, match="is missing"):
        backup(workspace, tmp_path / "b.tar")
    assert list(tmp_path.glob("*b.tar*")) == []


def test_what_a_killed_backup_to_the_same_file_was_writing_is_removed(workspace, tmp_path) -> None:
    ours, other = tmp_path / ".b[1].tar.1-1-00000000.tmp", tmp_path / ".other.tar.1-1-00000000.tmp"
    for path in (ours, other):
        path.write_text("half")
    backup(workspace, tmp_path / "b[1].tar")
    assert list(tmp_path.glob(".*.tmp")) == [other]


def test_nothing_is_replaced_and_a_running_build_is_waited_for(workspace, tmp_path, monkeypatch) -> None:
    backup(workspace, tmp_path / "b.tar")
    with pytest.raises(InputError, match="exists"):
        backup(workspace, tmp_path / "b.tar")
    with pytest.raises(WorkspaceError, match="not empty"):
        restore(tmp_path / "b.tar", workspace.path)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(WorkspaceError, match="is the current folder"):
        restore(tmp_path / "b.tar", Path())
    with workspace.lock(0), pytest.raises(WorkspaceError, match="still holds"):
        backup(Workspace.open(workspace.path), tmp_path / "c.tar", wait=0.1)


def _cut(share: float) -> Callable[[Path], None]:
    def cut(archive: Path) -> None:
        whole = archive.read_bytes()
        archive.write_bytes(whole[: int(whole.index(b"SHA256SUMS") * share)])

    return cut


def _change_a_byte(archive: Path) -> None:
    whole = bytearray(archive.read_bytes())
    with tarfile.open(archive) as tar:
        entry = next(entry for entry in tar if "labels" in entry.name)
    whole[entry.offset_data + 20] ^= 1
    archive.write_bytes(whole)


def _repeat(archive: Path) -> None:
    with tarfile.open(archive) as tar:
        members = [(entry.name, tar.extractfile(entry).read()) for entry in tar]
    _tar((members[0][0], b"other"), *members)(archive)


def _tar(*members: tuple[str, bytes], link: str = "") -> Callable[[Path], None]:
    def write(archive: Path) -> None:
        with tarfile.open(archive, "w") as tar:
            for name, data in members:
                entry = tarfile.TarInfo(name)
                entry.size = len(data)
                if link:
                    entry.type, entry.linkname = tarfile.SYMTYPE, link
                tar.addfile(entry, io.BytesIO(data))

    return write


SUMS = (b"x", b"0" * 64 + b"  a\n" + b"1" * 64 + b"  b\n", b"\xff\x00")
EVIL = ("../evil", "/etc/evil", "a/../../evil", "c:evil", "a\\..\\evil")
REFUSED = [
    *((_cut(share), "cut short|not a backup") for share in (0.1, 0.5, 0.97)),
    (_change_a_byte, r"1 files are not what was backed up, first tables/\S*labels"),
    (_repeat, "twice"),
    *((_tar((name, b"x")), "which no backup holds") for name in EVIL),
    (_tar(("evil", b""), link="/etc/passwd"), "which no backup holds"),
    *((_tar(("a", b"x"), ("SHA256SUMS", text)), "is damaged: . files are not what was backed up") for text in SUMS),
    (lambda archive: archive.write_text("no tar"), "not a backup"),
    (Path.unlink, "does not exist"),
]


@pytest.mark.parametrize(("spoil", "message"), REFUSED)
def test_an_archive_that_is_not_what_was_backed_up_restores_nothing(workspace, tmp_path, spoil, message) -> None:
    backup(workspace, archive := tmp_path / "b.tar")
    spoil(archive)
    with pytest.raises(InputError, match=message):
        restore(archive, tmp_path / "deep" / "W2")
    assert not [*tmp_path.rglob("W2*"), *tmp_path.rglob(".W2*"), *tmp_path.rglob("*evil*")]

"""Files that are there whole or not at all."""

import errno
import json
import os
from pathlib import Path

import pytest

from quit.common.files import LEFTOVER, files_below, read_json, remove_leftovers, replacing, write_json, writing
from quit.errors import WorkspaceError


def test_a_file_is_replaced_whole_or_stays_as_it_was(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "file"
    for content in ("first", "second"):
        with replacing(target) as temporary:
            temporary.write_text(content)
            assert temporary.parent == target.parent and LEFTOVER.fullmatch(temporary.name)
            assert [*files_below(tmp_path)] == ([target] if content == "second" else [])
        assert target.read_text() == content
    with pytest.raises(ZeroDivisionError), replacing(target) as temporary:
        temporary.write_text("half")
        raise ZeroDivisionError
    assert target.read_text() == "second" and [*target.parent.iterdir()] == [target]


def test_a_private_file_is_the_owners_alone_and_a_link_takes_no_name_that_is_taken(tmp_path: Path) -> None:
    with replacing(tmp_path / "key", private=True) as temporary:
        assert temporary.stat().st_mode & 0o777 == 0o600
        temporary.write_text("secret")
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600
    with pytest.raises(FileExistsError), replacing(tmp_path / "key", place=os.link) as temporary:
        temporary.write_text("another")
    assert (tmp_path / "key").read_text() == "secret" and len([*tmp_path.iterdir()]) == 1


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_said(code: int) -> None:
    with pytest.raises(WorkspaceError, match="The disk is full: could not write W/x"), writing(Path("W/x")):
        raise OSError(code, os.strerror(code))


def test_the_file_at_fault_is_named(tmp_path: Path) -> None:
    """The one that is written, or another one that is read for it."""
    (tmp_path / "file").touch()
    for target in (tmp_path / "file" / "x", tmp_path / "file" / "deep" / "x"):
        with pytest.raises(WorkspaceError) as raised, writing(target), replacing(target):
            pytest.fail("There is no such folder.")
        message = str(raised.value)
        assert message.startswith(f"Could not write {target}: ") and f"{tmp_path / 'file'}: " not in message
    missing = tmp_path / "elsewhere" / "in"
    with pytest.raises(WorkspaceError) as raised, writing(tmp_path / "W" / "x"), replacing(tmp_path / "W" / "x"):
        missing.read_bytes()
    assert f"Could not write {tmp_path / 'W/x'}: {missing}: No such file" in str(raised.value)


def test_leftovers_of_killed_runs_go_and_nothing_else(tmp_path: Path) -> None:
    names = [".a.12-34-0123abcd.tmp", ".a.12-34.tmp", ".a.tmp", "a.12-34.tmp", "a"]
    for name in names:
        (tmp_path / name).touch()
    remove_leftovers(tmp_path, "a.*")
    assert {path.name for path in tmp_path.iterdir()} == {*names[1:]}


@pytest.mark.parametrize("content", [None, b"{", b"\xff", b"[" * 100_000])
def test_json_that_cannot_be_read_is_none(content: bytes | None, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "x.json").write_bytes(content)
    assert read_json(tmp_path / "x.json") is None


def test_json_is_written_as_it_is_read(tmp_path: Path) -> None:
    value = {"é": [1, None, {"a": 0.5}]}
    write_json(tmp_path / "x.json", value)
    assert json.loads((tmp_path / "x.json").read_text(encoding="utf-8")) == read_json(tmp_path / "x.json") == value

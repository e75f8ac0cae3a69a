"""A file is known by its mark for as long as nobody writes to it, whatever its times say."""

import hashlib
import os
from pathlib import Path

import pytest

from quit.common import checksums
from quit.common.checksums import file_mark, known_checksum


@pytest.fixture
def old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that was written long enough ago."""
    monkeypatch.setattr(checksums, "_COARSEST", 0)
    (tmp_path / "file").write_bytes(b"one")
    return tmp_path / "file"


def test_a_file_is_hashed_again_once_it_was_written_to_also_with_its_time_set_back(old: Path) -> None:
    times = old.stat()
    for content in (b"one", b"two"):
        old.write_bytes(content)
        os.utime(old, ns=(times.st_atime_ns, times.st_mtime_ns))
        assert known_checksum(old) == hashlib.sha256(content).hexdigest()


def test_what_was_read_is_remembered_unless_the_file_was_written_to_meanwhile(old: Path, monkeypatch) -> None:
    assert file_mark(old).holds()
    mark = file_mark(old)
    old.write_bytes(b"longer")
    assert not mark.holds()
    read = []
    monkeypatch.setattr(checksums, "file_checksum", lambda path: read.append(path) or "0")
    assert [known_checksum(old), known_checksum(old)] == ["0", "0"] and read == [old]


def test_a_file_of_this_moment_is_hashed_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change within the clock's grain would have the same times."""
    (tmp_path / "file").write_bytes(b"one")
    read = []
    monkeypatch.setattr(checksums, "file_checksum", lambda path: read.append(path) or "0")
    assert not file_mark(tmp_path / "file").is_settled
    assert [known_checksum(tmp_path / "file") for _ in range(2)] == ["0", "0"] and len(read) == 2

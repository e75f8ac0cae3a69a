"""Manifests with checksums: what is compared, what is remembered on disk."""

import hashlib
import json
import os
from contextlib import suppress
from itertools import product
from pathlib import Path

import pytest

from quit.common import checksums, manifests
from quit.common.manifests import fault, write_manifest


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of two files that were written an hour ago, and a manifest of them."""
    for name in ("a", "deep/b"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"content of {name}")
    monkeypatch.setattr(checksums, "_COARSEST", -1)  # whatever was written counts as settled
    write_manifest(tmp_path / "m.json", {"size": (3, 4)}, [tmp_path / "deep" / "b", tmp_path / "a"])
    return tmp_path


def test_a_manifest_has_bytes_and_sha256_of_each_file(folder: Path) -> None:
    manifest = json.loads((folder / "m.json").read_text())
    data = b"content of a"
    assert manifest["files"]["a"] == {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    assert list(manifest["files"]) == ["a", "deep/b"] and manifest["size"] == [3, 4]
    assert fault(folder / "m.json") is None


def test_every_change_of_a_manifest_is_found(folder: Path) -> None:
    text = (folder / "m.json").read_bytes()
    for position, bit in product(range(len(text)), (1, 16)):
        changed = bytearray(text)
        changed[position] ^= bit
        (folder / "m.json").write_bytes(changed)
        with suppress(ValueError):
            if json.loads(changed) == json.loads(text):
                continue  # white space
        assert fault(folder / "m.json"), (position, bit)


def test_a_file_is_read_once_until_it_is_written_to(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    checksum = checksums.file_checksum
    monkeypatch.setattr(checksums, "file_checksum", lambda path: read.append(path.name) or checksum(path))

    def fault_of_a_new_process() -> str | None:
        checksums._CHECKSUMS.clear()
        read.clear()
        return fault(folder / "m.json")

    assert fault_of_a_new_process() is None and sorted(read) == ["a", "b"]
    assert fault_of_a_new_process() is None and not read
    times = (folder / "a").stat()
    (folder / "a").write_text("CONTENT of a")  # the same size, and its time set back
    os.utime(folder / "a", ns=(times.st_atime_ns, times.st_mtime_ns))
    problem = fault_of_a_new_process()
    assert problem and str(folder / "a") in problem and read == ["a"]
    (folder / "a").write_text("content of a")
    assert fault_of_a_new_process() is None and read == ["a"]
    for remembered in folder.glob(".*"):
        for text in ("", "[]", '{"a": 1, "deep/b": [null]}'):
            remembered.write_text(text)
            assert fault_of_a_new_process() is None and sorted(read) == ["a", "b"]


def test_a_file_just_written_is_not_remembered(tmp_path: Path) -> None:
    """A change within the clock's grain would have the same times."""
    (tmp_path / "a").write_text("x")
    write_manifest(tmp_path / "m.json", {}, [tmp_path / "a"])
    assert fault(tmp_path / "m.json") is None
    assert "a" not in (manifests.remembered(tmp_path / "m.json"))

